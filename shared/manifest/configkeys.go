package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ConfigKeys says in one line what the configuration of a stage may have, for a hint.
func (s *Stage) ConfigKeys() string {
	properties, _ := s.Config["properties"].(map[string]any)
	if len(properties) == 0 {
		return fmt.Sprintf("stage %s has no configuration keys", s.Name)
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		keys = append(keys, s.configKey(key))
	}
	return fmt.Sprintf("stage %s takes %s", s.Name, strings.Join(keys, ", "))
}

// Complete returns a configuration with the defaults of the keys that it omits.
func (s *Stage) Complete(config map[string]any) map[string]any {
	complete := map[string]any{}
	properties, _ := s.Config["properties"].(map[string]any)
	for key, schema := range properties {
		if schema, ok := schema.(map[string]any); ok && schema["default"] != nil {
			complete[key] = schema["default"]
		}
	}
	maps.Copy(complete, config)
	return complete
}

// configKey describes a key by what its schema says. It is "" for a key that the schema does not have.
func (s *Stage) configKey(key string) string {
	properties, _ := s.Config["properties"].(map[string]any)
	schema, ok := properties[key].(map[string]any)
	if !ok {
		return ""
	}
	var parts []string
	add := func(format, keyword string) {
		if v, ok := schema[keyword]; ok {
			parts = append(parts, fmt.Sprintf(format, short(v)))
		}
	}
	if _, listed := schema["enum"]; !listed {
		add("%s", "type")
	}
	add("one of %s", "enum")
	low, hasLow := schema["minimum"]
	high, hasHigh := schema["maximum"]
	switch {
	case hasLow && hasHigh:
		parts = append(parts, fmt.Sprintf("%s to %s", short(low), short(high)))
	case hasLow:
		add("at least %s", "minimum")
	case hasHigh:
		add("at most %s", "maximum")
	}
	add("above %s", "exclusiveMinimum")
	add("below %s", "exclusiveMaximum")
	add("default %s", "default")
	if len(parts) == 0 {
		return key
	}
	return fmt.Sprintf("%s (%s)", key, strings.Join(parts, ", "))
}

// short writes a value of a schema: words without quotes, lists with commas.
func short(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, short(e))
		}
		return strings.Join(all, ", ")
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
