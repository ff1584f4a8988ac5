package resume

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// began are the hashes of a run, as a checkpoint has them.
func began() map[string]string {
	return map[string]string{
		"graph": strings.Repeat("ab", 32), "features": strings.Repeat("01", 32), "data": strings.Repeat("23", 32),
		"seed": "1", "batch_size": "16", "accumulation": "1", "static_shapes": "false", "order": "first",
		"optimizer": `["adamw",0.003,[0.9,0.999],1e-8,0,0.01,1]`, "schedule": `["cosine",20]`,
		"plugins": `["augment 0.1.0 ` + strings.Repeat("aa", 32) + `","features 0.1.0 ` + strings.Repeat("cd", 32) +
			`"]`,
		"pipeline": `[{"name":"target","stage":"logmel","config":{"gain":1,"edges":[1,2]},"inputs":{"a":"b"},"outputs":{"c":"mel"}}]`,
	}
}

// TestDifferencesOfChoices: each part of a choice is named.
func TestDifferencesOfChoices(t *testing.T) {
	const was = `[{"name":"g","p":0.5,"one_of":[{"name":"x","stage":"s","inputs":{},"outputs":{}},` +
		`{"name":"y","stage":"s","inputs":{},"outputs":{},"p":0.1}]},` +
		`{"name":"h","some_of":[{"name":"z","stage":"s","inputs":{},"outputs":{}}],"count":1}]`
	for _, c := range []struct{ from, to, want string }{
		{`"p":0.5`, `"p":0.25`, "augment/g/p: 0.5 -> 0.25"},
		{`"p":0.1`, `"p":0.2`, "augment/g/stage: one of (x, y 10 %) -> one of (x, y 20 %), augment/y/p: 0.1 -> 0.2"},
		{`"name":"x",`, `"name":"x","weight":2,`, "augment/x/weight: 1 -> 2"},
		{`"count":1`, `"count":[0,1]`, "augment/h/stage: 1 of (z) -> 0 to 1 of (z)"},
	} {
		var got []string
		is := strings.Replace(was, c.from, c.to, 1)
		for _, d := range Differences(map[string]string{"pipeline": was}, map[string]string{"pipeline": is}) {
			got = append(got, d.String())
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s:\n%q, want\n%s", c.to, got, c.want)
		}
	}
}

// TestDifferencesOfPlayers: a player without a schedule of its own in the checkpoint has the run's.
func TestDifferencesOfPlayers(t *testing.T) {
	of := func(more ...string) map[string]string {
		hashes := map[string]string{"schedule": `["cosine",20]`}
		for _, player := range []string{"judge", "maker"} {
			hashes["optimizer/"+player] = `["adamw",0.003,[0.9,0.999],1e-8,0,0.01,1]`
		}
		for i := 0; i < len(more); i += 2 {
			hashes[more[i]] = more[i+1]
		}
		return hashes
	}
	for _, c := range []struct {
		was, is map[string]string
		want    string
	}{
		{of(), of(), ""},
		{of(), of("schedule/judge", `["constant",20]`), "[schedule/judge: cosine -> constant]"},
		{
			of("schedule/judge", `["constant",5]`), of(),
			"[schedule/judge: constant -> cosine warmup-steps/judge: 5 -> 20]",
		},
		{
			of("schedule/judge", `["constant",20]`), of("schedule", `["constant",20]`),
			"[schedule/maker: cosine -> constant]",
		},
		{of(), of("schedule/judge", `["cosine",20,0.1]`), "[min-lr/judge: 0 -> 0.1]"},
		{of(), of("optimizer/maker", `["adamw",0,[0.9,0.999],1e-8,0,0.01,1]`), "[lr/maker: 0.003 -> 0]"},
	} {
		if got := Differences(c.was, c.is); (len(got) > 0 || c.want != "") && fmt.Sprint(got) != c.want {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
}

// TestPluginWithoutSum: a run of a program that knew no sum of a plugin without plugin.sum can be resumed.
func TestPluginWithoutSum(t *testing.T) {
	saved := map[string]string{"plugins": `["noise 1.0.0"]`}
	for version, want := range map[string]int{"1.0.0": 0, "1.1.0": 1} {
		now := map[string]string{"plugins": `["noise ` + version + " " + strings.Repeat("ab", 32) + `"]`}
		if got := Differences(saved, now); len(got) != want {
			t.Errorf("%s: %v", version, got)
		}
	}
	if got := Differences(map[string]string{"plugins": `["noise 1.0.0 ab"]`}, saved); len(got) != 1 {
		t.Errorf("a lost sum: %v", got)
	}
}

// TestDifferences: each setting that changed is named with both values, as a person would write them.
func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        []string
	}{
		{"graph", strings.Repeat("cd", 32), []string{"graph: abababababab -> cdcdcdcdcdcd"}},
		{"seed", "2", []string{"seed: 1 -> 2"}},
		{"batch_size", "8", []string{"batch-size: 16 -> 8"}},
		{"accumulation", "2", []string{"accumulate: 1 -> 2"}},
		{"static_shapes", "true", []string{"enable-static-shapes: false -> true"}},
		{"precision", "bf16", []string{"precision: f32 -> bf16"}},
		{"precision", "f32", nil},
		{"frozen", "2 of 9 tensors (abc)", []string{"freeze: nothing -> 2 of 9 tensors (abc)"}},
		{"order", "another", nil},
		{"optimizer", `["adamw",0.001,[0.9,0.98],1e-8,0,0,1]`, []string{
			"betas: 0.9, 0.999 -> 0.9, 0.98", "lr: 0.003 -> 0.001", "weight-decay: 0.01 -> 0",
		}},
		{
			"optimizer",
			`["adamw",0.003,[0.9,0.999],1e-8,0,0.01,1,{"beta2_decay":-0.8,"groups":[{"match":["a"],"lr_factor":2}]}]`,
			[]string{"beta2-decay: none -> -0.8", `groups: none -> "match":["a"], "lr_factor":2`},
		},
		{"schedule", `["constant",0]`, []string{"schedule: cosine -> constant", "warmup-steps: 20 -> 0"}},
		{"schedule", `["cosine",20,0.1,"x"]`, []string{"min-lr: 0 -> 0.1", "schedule/3: none -> x"}},
		{"schedule", `["plateau",20,0,0.5,3]`, []string{
			"plateau-factor: none -> 0.5", "plateau-patience: none -> 3", "schedule: cosine -> plateau",
		}},
		{
			"plugins",
			`["augment 0.2.0 ` + strings.Repeat("aa", 32) + `","features 0.1.0 ` + strings.Repeat("ce", 32) + `"]`,
			[]string{
				"plugins/augment: 0.1.0 (aaaaaaaaaaaa) -> 0.2.0 (aaaaaaaaaaaa)",
				"plugins/features: 0.1.0 (cdcdcdcdcdcd) -> 0.1.0 (cececececece)",
			},
		},
		{
			"pipeline",
			`[{"name":"waveaug","stage":"waveaug","inputs":{},"outputs":{}},{"name":"target","stage":"logmel","config":{"gain":2,"edges":[1,3]},"inputs":{"a":"b"},"outputs":{"c":"mel"}}]`,
			[]string{
				"augment: target -> waveaug, target", "augment/target/config.edges: 1, 2 -> 1, 3",
				"augment/target/config.gain: 1 -> 2",
			},
		},
		{
			"pipeline",
			`[{"name":"target","stage":"logmel","config":{"gain":1,"edges":[1,2]},"inputs":{"a":"b"},"outputs":{"c":"mel"},"p":[[0,0],[9,0.5]]}]`,
			[]string{"augment/target/p: none -> 0 at step 0, 0.5 at step 9"},
		},
		{
			"pipeline",
			`[{"name":"target","stage":"logmel","config":{"gain":1,"edges":[1,2]},"inputs":{"a":"b"},"outputs":{"c":"mel"}},` +
				`{"name":"g","p":0.5,"one_of":[{"name":"x","stage":"s","inputs":{},"outputs":{},"weight":2}]}]`,
			[]string{"augment: target -> target, g"},
		},
		{"pipeline", `[{"name":"g","some_of":[{"name":"x","stage":"s","inputs":{},"outputs":{}}]}]`,
			[]string{"augment: target -> unreadable"}},
		{"plugins and pipeline", "", []string{"augment: target -> waveaug, target"}},
		{"clips", strings.Repeat("77", 32), nil}, // an older checkpoint does not know the recordings
		{"later", "1", []string{"later: none -> 1"}},
		{"seed", "\x1b[31m2", []string{`seed: 1 -> \x1b[31m2`}},
		// Of a damaged checkpoint.
		{"optimizer", `{"lr":1}`, []string{
			"betas: 0.9, 0.999 -> none", "eps: 1e-8 -> none", "grad-clip: 1 -> none", "lr: 0.003 -> none",
			"momentum: 0 -> none", "optimizer: adamw -> unreadable", "weight-decay: 0.01 -> none",
		}},
		{"plugins", `["",""]`, []string{
			"plugins: none -> unreadable", "plugins/augment: 0.1.0 (aaaaaaaaaaaa) -> none",
			"plugins/features: 0.1.0 (cdcdcdcdcdcd) -> none",
		}},
		{"pipeline", `[1]`, []string{"augment: target -> unreadable"}},
		// A value that is too long to be shown has a hash.
		{
			"later", strings.Repeat("x", 300),
			[]string{"later: none -> " + visible.Short(strings.Repeat("x", 300), 185) + " (0d4e2ca9e9cb)"},
		},
	} {
		now := began()
		now[c.name] = c.value
		if c.name == "plugins and pipeline" { // a stage of a plugin that the run did not need
			delete(now, c.name)
			now["plugins"] = strings.Replace(now["plugins"], "augment 0.1.0 "+strings.Repeat("aa", 32), "more 0.1.0", 1)
			now["pipeline"] = strings.Replace(now["pipeline"], "[",
				`[{"name":"waveaug","stage":"more/waveaug","inputs":{},"outputs":{}},`, 1)
		}
		var got []string
		for _, d := range Differences(began(), now) {
			got = append(got, d.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s:\n%q, want\n%q", c.name, c.value, got, c.want)
		}
	}
}

// TestNumberOfClips: changed data is described by the number of clips, if the checkpoint has it.
func TestNumberOfClips(t *testing.T) {
	now := began()
	now["data"], now["rows"] = strings.Repeat("45", 32), "23"
	for _, c := range []struct{ rows, want string }{
		{"24", "data: 232323232323 -> 454545454545; data/clips: 24 -> 23"},
		{"23", "data: 232323232323 -> 454545454545"},
		{"", "data: 232323232323 -> 454545454545"}, // of an older program
	} {
		was := began()
		if c.rows != "" {
			was["rows"] = c.rows
		}
		var got []string
		for _, d := range Differences(was, now) {
			got = append(got, d.String())
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%q clips: %s, want %s", c.rows, text, c.want)
		}
	}
}
