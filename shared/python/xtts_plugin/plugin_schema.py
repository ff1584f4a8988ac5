"""The schema of plugin.json, shared/manifest/plugin.schema.json of xtts-host: a test compares the two."""
import json

SCHEMA = json.loads(r"""
{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "plugin.json of xtts-host, protocols 1 and 2",
 "type": "object", "additionalProperties": false, "required": ["id", "version", "protocol", "stages"],
 "properties": {"id": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]*$", "maxLength": 64},
  "version": {"type": "string", "minLength": 1, "maxLength": 64}, "protocol": {"type": "integer", "minimum": 1},
  "description": {"type": "string"}, "license": {"type": "string"},
  "executable": {"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^[a-z0-9]+_[a-z0-9]+(_cuda)?$"},
   "additionalProperties": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._-]*$"}},
  "argv": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
  "gpu_memory_mb": {"type": "integer", "minimum": 1, "maximum": 1073741824},
  "memory_mb": {"type": "integer", "minimum": 1, "maximum": 1073741824},
  "stages": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/stage"}}},
 "$defs": {"port": {"type": "object", "additionalProperties": false, "required": ["name", "dtype", "shape"],
   "properties": {"name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    "dtype": {"enum": ["f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"]},
    "shape": {"type": "array", "minItems": 1, "maxItems": 8,
     "items": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1073741824},
       {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}]}},
    "lengths": {"type": "string"}, "max_abs": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e+38},
    "may_be_zero": {"type": "boolean"}}},
  "stage": {"type": "object", "additionalProperties": false,
   "required": ["name", "kind", "inputs", "outputs", "deterministic"],
   "properties": {"name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]*$", "maxLength": 64},
    "kind": {"enum": ["preprocess", "augment"]},
    "inputs": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/port"}},
    "outputs": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/port"}}, "config": {"type": "object"},
    "max_growth": {"type": "number", "minimum": 1, "maximum": 64}, "gpu": {"enum": ["none", "optional", "required"]},
    "deterministic": {"type": "boolean"}, "cacheable": {"type": "boolean"},
    "files": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"type": "string", "minLength": 1}}}}}}
""")
