package selection

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

var grouped = []manifest.Parameter{
	{Name: "text.embedding.weight", Aliases: []string{"head.weight"}}, {Name: "text.norm.weight"},
	{Name: "text.norm.bias"}, {Name: "decoder.weight"}, {Name: "decoder.bias"}, {Name: "positions", Frozen: true},
}

func TestGroups(t *testing.T) {
	for _, c := range []struct{ name, bundle, factors, decays, want string }{
		{"none", `[]`, "", "", `null`},
		{"factor of 1", `[]`, "text=1", "", `null`},
		{
			"flags", `[]`, "text=0.1", "*.bias=0",
			`[{"match":["text.embedding.weight","text.norm.weight"],"lr_factor":0.1},{"match":["text.norm.bias"],"lr_factor":0.1,"weight_decay":0},{"match":["decoder.bias"],"weight_decay":0}]`,
		},
		{
			"the first entry decides", `[]`, "text.norm=2,text=0.1", "",
			`[{"match":["text.embedding.weight"],"lr_factor":0.1},{"match":["text.norm.weight","text.norm.bias"],"lr_factor":2}]`,
		},
		{
			"flags come before the bundle, value by value",
			`[{"match":["head","decoder"],"lr_factor":5,"weight_decay":0.2}]`, "decoder.bias=1", "head=0.3",
			`[{"match":["text.embedding.weight"],"lr_factor":5,"weight_decay":0.3},{"match":["decoder.weight"],"lr_factor":5,"weight_decay":0.2},{"match":["decoder.bias"],"weight_decay":0.2}]`,
		},
	} {
		s := Settings{Known: grouped}
		if err := json.Unmarshal([]byte(c.bundle), &s.Bundle); err != nil {
			t.Fatal(err)
		}
		s.LRFactor, s.WeightDecay = fields(c.factors), fields(c.decays)
		list, err := Groups(grouped, s)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(list); string(got) != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

func fields(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func TestGroupIndex(t *testing.T) {
	got := GroupIndex([]manifest.Group{{Match: []string{"a", "b"}}, {Match: []string{"c"}}})
	if want := map[string]int{"a": 1, "b": 1, "c": 2}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestRefusedGroups(t *testing.T) {
	for _, c := range []struct{ factor, decay, want, advice string }{
		{"text", "", "--lr-factor text: not PATTERN=NUMBER", "text_encoder=0.1"},
		{"text=-1", "", "--lr-factor text=-1: not PATTERN=NUMBER", "at least 0"},
		{"text=NaN", "", "--lr-factor text=NaN: not", "at least 0"},
		{"", "decodr=0", "--weight-decay-of decodr=0: no parameter has such a name", "decoder"},
		{"", "[=0", "--weight-decay-of [=0: not a pattern", "[abc]"},
	} {
		_, err := Groups(grouped, Settings{LRFactor: fields(c.factor), WeightDecay: fields(c.decay), Known: grouped})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(hint.Of(err), c.advice) {
			t.Errorf("got %v (%s), want %s", err, hint.Of(err), c.want)
		}
	}
}
