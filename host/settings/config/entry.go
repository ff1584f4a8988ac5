package config

// entrySchema is the schema of an entry of the pipeline, or of a member of one, as in bundle.json. Without ranges it
// leaves to manifest.CheckPipeline what that refuses with a better message.
func entrySchema(ranges, member bool) map[string]any {
	type object = map[string]any
	text := object{"type": "string", "minLength": 1}
	ports := object{"type": "object", "additionalProperties": text, "description": "tensors by the stage's ports"}
	members := func(what string) object {
		m := object{"type": "array", "maxItems": 256, "description": what}
		if !member {
			m["items"] = entrySchema(ranges, true)
		}
		if ranges {
			m["minItems"] = 1
		}
		return m
	}
	number := func(low, high float64) object {
		if !ranges {
			return object{"type": "number"}
		}
		return object{"type": "number", "minimum": low, "maximum": high}
	}
	probability := number(0, 1)
	probability["type"] = []any{"number", "array"}
	probability["maxItems"] = 1000
	probability["items"] = object{"type": "array", "minItems": 2, "maxItems": 2, "items": object{"type": "number"}}
	probability["description"] = "probability that a row of a training batch gets the entry; pairs of a step and a " +
		"probability make a schedule"
	count := object{
		"type": []any{"integer", "array"}, "minItems": 2, "maxItems": 2, "items": object{"type": "integer"},
		"description": "how many of some_of a row gets, or the least and the largest number",
	}
	weight := number(0, 1e6)
	weight["description"] = "share of a member of one_of, default 1"
	properties := object{
		"name": text, "stage": text, "config": object{"type": "object"}, "inputs": ports, "outputs": ports,
		"p": probability, "data": object{
			"type": "object", "additionalProperties": text,
			"description": "paths of the stage's data folders; a bundle has none",
		},
	}
	if member || !ranges {
		properties["weight"] = weight
	}
	schema := object{
		"type": "object", "additionalProperties": false, "required": []string{"name"}, "properties": properties,
	}
	if member && ranges {
		schema["required"] = []string{"name", "stage", "inputs", "outputs"}
		return schema
	}
	properties["one_of"] = members("stages of which a row gets one")
	properties["some_of"] = members("stages of which a row gets count")
	properties["count"] = count
	schema["if"] = object{"anyOf": []any{
		object{"required": []string{"one_of"}}, object{"required": []string{"some_of"}},
	}}
	schema["else"] = object{"required": []string{"stage", "inputs", "outputs"}}
	return schema
}
