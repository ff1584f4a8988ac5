package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// checkGrowth checks the key of the configuration that the growth depends on.
func (s *Stage) checkGrowth() error {
	if s.GrowthKey == "" {
		return nil
	}
	properties, _ := s.Config["properties"].(map[string]any)
	property, _ := properties[s.GrowthKey].(map[string]any)
	least, _ := property["minimum"].(float64)
	switch _, number := property["default"].(float64); {
	case s.MaxGrowth == 0:
		return fmt.Errorf("stage %q: growth_key needs max_growth", s.Name)
	case !number || least <= 0:
		return fmt.Errorf("stage %q: growth_key is %q, which is no property of config with a number as its default "+
			"and a minimum above 0", s.Name, s.GrowthKey)
	}
	return nil
}

// Growth is the largest factor by which the stage lengthens a row with a configuration that satisfies its schema.
func (s *Stage) Growth(config map[string]any) float64 {
	growth := max(s.MaxGrowth, 1)
	if s.GrowthKey == "" {
		return growth
	}
	value, given := config[s.GrowthKey]
	if !given {
		property, _ := s.Config["properties"].(map[string]any)[s.GrowthKey].(map[string]any)
		value = property["default"]
	}
	if v, ok := number(value); ok && v > 0 {
		return min(growth, max(1, 1/v))
	}
	return growth
}

// number is a value of a configuration in JSON or YAML as a float.
func number(value any) (float64, bool) {
	switch v := reflect.ValueOf(value); {
	case !v.IsValid():
		return 0, false
	case v.CanFloat():
		return v.Float(), true
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	}
	n, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}
