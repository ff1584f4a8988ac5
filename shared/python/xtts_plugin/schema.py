"""JSON Schema, as far as plugin.json uses it: the defaults of a configuration, and what is wrong with a value.

The host knows all of JSON Schema. Here, keywords that are not listed below are ignored.
"""
import copy
import re

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float)}


def resolve(root, schema):
    """The parts of a schema: itself, and what its `$ref` into the same document leads to."""
    parts = []
    while isinstance(schema, dict) and schema not in parts:
        parts.append(schema)
        ref = schema.get("$ref")
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            break
        schema = root
        for key in ref[1:].split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            try:
                schema = schema[int(key)] if isinstance(schema, list) else schema[key]
            except (KeyError, IndexError, ValueError, TypeError):
                raise ValueError(f"the schema has no {ref}") from None
    return parts


def filled(root, schema, value):
    """value with the defaults of the properties that it lacks."""
    for part in resolve(root, schema) if isinstance(value, dict) else ():
        for key, property in part.get("properties", {}).items():
            if key not in value:
                defaults = [p["default"] for p in resolve(root, property) if "default" in p]
                if defaults:
                    value[key] = copy.deepcopy(defaults[0])
            if key in value:
                filled(root, property, value[key])
    return value


def faults(root, schema, value, at=""):
    """What is wrong with a value, one message for each fault. at is the place of the value, such as /stages/0."""
    found, where = [], at or "the whole"
    if schema is False:
        return [f"{where}: no value is allowed"]
    for part in resolve(root, schema):
        kinds = part.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(_is(kind, value) for kind in kinds):
            return [f"{where}: {value!r} is no {' or '.join(kinds)}"]
        if "enum" in part and not any(_same(value, v) for v in part["enum"]):
            found.append(f"{where}: {value!r} is none of {', '.join(map(repr, part['enum']))}")
        if "const" in part and not _same(value, part["const"]):
            found.append(f"{where}: {value!r} is not {part['const']!r}")
        if "anyOf" in part and all(faults(root, one, value, at) for one in part["anyOf"]):
            found.append(f"{where}: {value!r} is nothing that the schema allows")
        found += [f"{where}: {value!r} is {text}" for text in _outside(part, value)]
        if isinstance(value, dict):
            found += _object(root, part, value, at)
        elif isinstance(value, list):
            for i, item in enumerate(value):
                found += faults(root, part.get("items", True), item, f"{at}/{i}")
            if part.get("uniqueItems") and any(_same(v, w) for i, v in enumerate(value) for w in value[:i]):
                found.append(f"{where}: {value!r} has an item twice")
    return found


def _object(root, part, value, at):
    properties, found = part.get("properties", {}), []
    found += [f"{at or 'the whole'}: {key!r} is missing" for key in part.get("required", []) if key not in value]
    for key, item in value.items():
        found += faults(root, part.get("propertyNames", True), key, f"{at}/{key} as a name")
        if key in properties:
            found += faults(root, properties[key], item, f"{at}/{key}")
        elif part.get("additionalProperties", True) is False and not _matches(part, key):
            found.append(f"{at}/{key}: unknown key; there are {', '.join(properties) or 'none'}")
        elif not _matches(part, key):
            found += faults(root, part.get("additionalProperties", True), item, f"{at}/{key}")
    return found


def _matches(part, key):
    return any(re.search(pattern, key) for pattern in part.get("patternProperties", {}))


def _outside(part, value):
    """The ranges that a value is outside of."""
    limits = []
    if _is("number", value):
        limits = [("minimum", value, "below {}"), ("maximum", value, "above {}"),
                  ("exclusiveMinimum", value, "not above {}"), ("exclusiveMaximum", value, "not below {}")]
    elif isinstance(value, str):
        limits = [("minLength", len(value), "shorter than {}"), ("maxLength", len(value), "longer than {}")]
        if "pattern" in part and not re.search(part["pattern"], value):
            yield f"not of the form {part['pattern']}"
    elif isinstance(value, list):
        limits = [("minItems", len(value), "shorter than {}"), ("maxItems", len(value), "longer than {}")]
    elif isinstance(value, dict):
        limits = [("minProperties", len(value), "smaller than {}"), ("maxProperties", len(value), "larger than {}")]
    for keyword, n, text in limits:
        if keyword in part:
            limit, least = part[keyword], keyword.endswith("inimum") or keyword.startswith("min")
            if (n < limit if least else n > limit) or keyword.startswith("exclusive") and n == limit:
                yield text.format(limit)


def _is(kind, value):
    if kind == "integer":
        return _is("number", value) and (isinstance(value, int) or value.is_integer())
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)
