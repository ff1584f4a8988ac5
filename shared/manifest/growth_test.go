package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// grown is a plugin whose stage has a growth key.
func grown(t *testing.T, keys string) (*Plugin, error) {
	t.Helper()
	return ParsePlugin("plugin.json", []byte(fmt.Sprintf(`{"id": "a", "version": "1", "protocol": 1, "argv": ["a"],
		"stages": [{"name": "slow", "kind": "augment", "deterministic": true, %s,
			"inputs": [{"name": "x", "dtype": "f32", "shape": ["B", "T"]}],
			"outputs": [{"name": "x", "dtype": "f32", "shape": ["B", "T"]}],
			"config": {"type": "object", "properties": {
				"speed": {"type": "number", "minimum": 0.5, "default": 0.9}, "name": {"type": "string", "default": "x"},
				"any": {"type": "number", "default": 1}}}}]}`, keys)))
}

// TestGrowth: the growth is that of the configuration, of the default without one, and never above the declared one.
func TestGrowth(t *testing.T) {
	p, err := grown(t, `"max_growth": 1.5, "growth_key": "speed"`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config map[string]any
		want   float64
	}{
		{nil, 1 / 0.9}, {map[string]any{"speed": 0.8}, 1.25}, {map[string]any{"speed": 0.5}, 1.5},
		{map[string]any{"speed": 1.2}, 1}, {map[string]any{"speed": 1}, 1}, {map[string]any{"speed": uint64(1)}, 1},
		{map[string]any{"speed": json.Number("0.8")}, 1.25}, {map[string]any{"speed": 1}, 1},
	} {
		if got := p.Stages[0].Growth(c.config); got != c.want {
			t.Errorf("%v: %g, want %g", c.config, got, c.want)
		}
	}
	if p, err = grown(t, `"max_growth": 1.5`); err != nil || p.Stages[0].Growth(nil) != 1.5 {
		t.Errorf("without a key: %v", err)
	}
	if p, err = grown(t, `"gpu": "none"`); err != nil || p.Stages[0].Growth(nil) != 1 {
		t.Errorf("without growth: %v", err)
	}
}

func TestGrowthIsChecked(t *testing.T) {
	for keys, want := range map[string]string{
		`"growth_key": "speed"`:                    `stage "slow": growth_key needs max_growth`,
		`"max_growth": 2, "growth_key": "name"`:    `growth_key is "name", which is no property of config with a number`,
		`"max_growth": 2, "growth_key": "any"`:     `growth_key is "any"`,
		`"max_growth": 2, "growth_key": "missing"`: `growth_key is "missing"`,
	} {
		if _, err := grown(t, keys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", keys, err, want)
		}
	}
}
