package selection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

var parameters = []manifest.Parameter{
	{Name: "text.embedding.weight", Aliases: []string{"head.weight"}},
	{Name: "text.norm.weight"},
	{Name: "text.norm.bias"},
	{Name: "decoder.blocks.0.weight"},
	{Name: "decoder.blocks.1.weight"},
	{Name: "decoder.blocks.10.weight"},
	{Name: "odd/name[0]"},
	{Name: "positions", Frozen: true},
}

func TestFrozen(t *testing.T) {
	const all = "decoder.blocks.0.weight decoder.blocks.1.weight decoder.blocks.10.weight odd/name[0] " +
		"text.embedding.weight text.norm.bias text.norm.weight"
	without := func(names ...string) string {
		left := slices.DeleteFunc(strings.Fields(all), func(n string) bool { return slices.Contains(names, n) })
		return strings.Join(left, " ")
	}
	for _, c := range []struct {
		freeze, only, want string
	}{
		{"", "", ""},
		{"text.norm.bias", "", "text.norm.bias"},
		{"text.norm", "", "text.norm.bias text.norm.weight"},
		{"text", "", "text.embedding.weight text.norm.bias text.norm.weight"},
		{"*.bias", "", "text.norm.bias"},
		{"text*weight", "", "text.embedding.weight text.norm.weight"},
		{"decoder.blocks.?", "", "decoder.blocks.0.weight decoder.blocks.1.weight"},
		{"decoder.blocks.[1-9]*", "", "decoder.blocks.1.weight decoder.blocks.10.weight"},
		{"decoder.blocks.1", "", "decoder.blocks.1.weight"},
		{"head", "", "text.embedding.weight"},
		{"o*0?", "", "odd/name[0]"},
		{`odd/name\[0]`, "", "odd/name[0]"},
		{"positions", "", ""},
		{
			"text.norm,decoder", "",
			"decoder.blocks.0.weight decoder.blocks.1.weight decoder.blocks.10.weight text.norm.bias text.norm.weight",
		},
		{"", "*", ""},
		{"", "text.norm.bias,head.weight", without("text.norm.bias", "text.embedding.weight")},
		{"", "positions,text.norm.bias", without("text.norm.bias")},
	} {
		got, err := Frozen(parameters, Patterns{split(c.freeze), split(c.only)})
		if err != nil || strings.Join(slices.Sorted(maps.Keys(got)), " ") != c.want {
			t.Errorf("--freeze %q --train-only %q: %v, %v; want %s", c.freeze, c.only, got, err, c.want)
		}
	}
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func TestRefused(t *testing.T) {
	const left = "leave a parameter to train; some may be frozen by the bundle (xtts-host graph inspect)"
	for _, c := range []struct{ freeze, only, err, hint string }{
		{
			"text,text.nrom", "", "--freeze text.nrom: no parameter has such a name",
			"the nearest names are text.norm, text, text.norm.bias",
		},
		{
			"", "decodr.*", "--train-only decodr.*: no parameter has such a name",
			"the nearest names are decoder, text, text.norm",
		},
		{
			"nix.*", "", "--freeze nix.*: no parameter has such a name",
			"the outermost names are text, decoder, odd/name[0], positions",
		},
		{
			"text[", "", "--freeze text[: not a pattern",
			"write a name with * for any text, ? for one character, [abc] for one of these",
		},
		{"*", "", "--freeze *: no parameter is left to train", left},
		{"", "positions", "--train-only positions: no parameter is left to train", left},
	} {
		got, err := Frozen(parameters, Patterns{split(c.freeze), split(c.only)})
		if err == nil || err.Error() != c.err || hint.Of(err) != c.hint {
			t.Errorf("--freeze %q --train-only %q: %v, %v (%s)", c.freeze, c.only, got, err, hint.Of(err))
		}
	}
	if _, err := Frozen([]manifest.Parameter{{Name: "a", Frozen: true}}, Patterns{}); err != nil {
		t.Errorf("without a pattern: %v", err)
	}
}

func TestFrozenIdentity(t *testing.T) {
	one, two := FrozenIdentity(map[string]bool{"a": true, "b": true}, 5),
		FrozenIdentity(map[string]bool{"a": true, "c": true}, 5)
	if one == two || !strings.HasPrefix(one, "2 of 5 tensors (") || FrozenIdentity(nil, 5) != "" {
		t.Errorf("%s, %s, %q", one, two, FrozenIdentity(nil, 5))
	}
}

func ExampleFrozen() {
	frozen, err := Frozen(parameters, Patterns{TrainOnly: []string{"text.norm", "*blocks.0.*"}})
	fmt.Println(len(frozen), err)
	// Output: 4 <nil>
}
