package selection

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestProbes(t *testing.T) {
	b := &manifest.Bundle{
		Probes: []manifest.Probe{{Name: "attention.0"}, {Name: "attention.1"}, {Name: "attentive"}},
		Parameters: []manifest.Parameter{
			{Name: "head.weight"}, {Name: "head.bias"}, {Name: "table", Aliases: []string{"tied"}},
		},
	}
	trained := map[string]bool{"head.weight": true, "head.bias": false, "table": true}
	for patterns, want := range map[string]string{
		"attention":                     "attention.0 attention.1",
		"attention.*":                   "attention.0 attention.1",
		"att*":                          "attention.0 attention.1 attentive",
		"*.1,attention":                 "attention.1 attention.0",
		"gradient/*":                    "gradient/head.weight gradient/table",
		"gradient/head":                 "gradient/head.weight",
		"parameter/head":                "parameter/head.weight parameter/head.bias",
		"parameter/tied,parameter/head": "parameter/table parameter/head.weight parameter/head.bias",
		"attentive,attentive":           "attentive",
		"gradient/head.bias":            "--probe gradient/head.bias: no tensor has such a name",
		"head":                          "--probe head: no tensor has such a name",
		"*,parameter/x":                 "--probe parameter/x: no tensor has such a name",
		"[":                             "--probe [: not a pattern",
		"gradient/[":                    "--probe gradient/[: not a pattern",
	} {
		s, err := Probes(strings.Split(patterns, ","), b, trained)
		var got []string
		for _, p := range s.Probes {
			got = append(got, p.Name)
		}
		for _, name := range s.Gradients {
			got = append(got, Gradient+name)
		}
		for _, name := range s.Parameters {
			got = append(got, Parameter+name)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if text := strings.Join(got, " "); text != want || err != nil && hint.Of(err) == "" {
			t.Errorf("%s: %s", patterns, text)
		}
	}
	for i := range mostShown {
		b.Parameters = append(b.Parameters, manifest.Parameter{Name: "p." + strings.Repeat("x", i)})
	}
	_, err := Probes([]string{"parameter/*"}, b, trained)
	if err == nil || err.Error() != "--probe parameter/*: 1003 tensors, at most 1000 are shown" {
		t.Error(err)
	}
}
