package manifest

import (
	"strings"
	"testing"
)

// players is a bundle.json with two players.
const players = `{
	"version": 1, "name": "two", "pipeline": [], "schedule": {"name": "constant"}, "accumulation": "exact",
	"inputs": [{"name": "x", "dtype": "f32", "shape": ["B", "T"], "origin": "dataset"}],
	"outputs": [{"name": "loss", "dtype": "f32", "shape": []}, {"name": "loss_weight", "dtype": "f32", "shape": []}, {"name": "metric.real", "dtype": "f32", "shape": [], "player": "judge"}],
	"parameters": [{"name": "judge.weight", "shape": [2], "player": "judge"}, {"name": "maker.weight", "shape": [2], "player": "maker"}],
	"buckets": [{"T": 4}],
	"features": {"sample_rate": 22050, "n_fft": 1024, "win_length": 1024, "hop_length": 256, "window": "hann", "center": true, "pad_mode": "constant", "power": 1,
		"n_mels": 80, "mel_scale": "slaney", "mel_norm": "slaney", "f_min": 0, "f_max": 11025, "log": "ln", "log_floor": 1e-5},
	"players": [{"name": "judge", "optimizer": {"name": "sgd", "lr": 0.2}, "schedule": {"name": "cosine", "warmup_steps": 3}}, {"name": "maker", "optimizer": {"name": "sgd", "lr": 0.1}}],
	"graphs": [{"file": "judge.onnx", "kind": "train", "precision": "f32", "player": "judge"}, {"file": "maker.onnx", "kind": "train", "precision": "f32", "player": "maker"},
		{"file": "eval.onnx", "kind": "eval", "precision": "f32"}],
	"files": {}
}`

func TestPlayers(t *testing.T) {
	b, err := ParseBundle("bundle.json", []byte(players))
	if err != nil {
		t.Fatal(err)
	}
	all := b.InTurn()
	if len(all) != 2 || all[0].Name != "judge" || b.Last().Optimizer.LR != 0.1 ||
		*all[0].Schedule != (Schedule{"cosine", 3}) || *b.Last().Schedule != (Schedule{Name: "constant"}) {
		t.Errorf("players %+v", all)
	}
	if own := b.ParametersOf("maker"); len(own) != 1 || own[0].Name != "maker.weight" {
		t.Errorf("parameters of maker: %+v", own)
	}
	if g, ok := b.TrainingGraph("judge", F32); !ok || g.File != "judge.onnx" {
		t.Errorf("graph of judge: %+v", g)
	}
	if g, ok := b.EvalGraph(); !ok || g.File != "eval.onnx" {
		t.Errorf("eval graph: %+v", g)
	}
}

// TestOnePlayerWithoutName: an ordinary bundle has one player, which trains everything.
func TestOnePlayerWithoutName(t *testing.T) {
	b := &Bundle{Optimizer: Optimizer{Name: "sgd"}, Parameters: []Parameter{{Name: "w"}}}
	all := b.InTurn()
	if len(all) != 1 || all[0].Name != "" || all[0].Optimizer.Name != "sgd" || len(b.ParametersOf("")) != 1 {
		t.Errorf("players %+v", all)
	}
}

func TestPlayersAreRefused(t *testing.T) {
	for _, c := range []struct{ replace, by, want string }{
		{`"name": "maker", "opt`, `"name": "judge", "opt`, `players: two are named "judge"`},
		{
			`"shape": [2], "player": "maker"`, `"shape": [2], "player": "maker", "frozen": true`,
			`players[1]: "maker" has no parameter that is trained`,
		},
		{
			`{"name": "judge.weight", "shape": [2], "player": "judge"}`,
			`{"name": "judge.weight", "shape": [2], "player": "judge"}, {"name": "other", "shape": [2]}`,
			`parameters[1] "other" belongs to no player`,
		},
		{
			`{"name": "judge.weight", "shape": [2], "player": "judge"}`,
			`{"name": "judge.weight", "shape": [2], "player": "judge"}, {"name": "other", "shape": [2], "player": "none"}`,
			`parameters[1] "other" belongs to "none", which is not in players`,
		},
		{`"shape": [], "player": "judge"`, `"shape": []`, `outputs[2] metric.real belongs to no player`},
		{
			`"name": "loss", "dtype": "f32", "shape": []`,
			`"name": "loss", "dtype": "f32", "shape": [], "player": "judge"`,
			`outputs[0]: loss is an output of every player`,
		},
		{`"precision": "f32", "player": "maker"`, `"precision": "f32"`, `graphs[1] maker.onnx belongs to no player`},
		{`"kind": "eval", "precision": "f32"`, `"kind": "eval", "precision": "f32", "player": "maker"`, `player`},
		{
			`"schedule": {"name": "cosine"`, `"schedule": {"name": "sine"`,
			`players.0.schedule.name: value must be one of`,
		},
		{`"warmup_steps": 3`, `"warmup_steps": -3`, `players.0.schedule.warmup_steps: minimum`},
		{
			`"lr": 0.1`, `"lr": 0.1, "groups": [{"match": ["judge"], "lr_factor": 2}]`,
			`players[1]: optimizer: groups[0]: "judge" matches no parameter`,
		},
		{`"players": [`, `"optimizer": {"name": "sgd", "lr": 1}, "players": [`, `optimizer`},
	} {
		text := strings.Replace(players, c.replace, c.by, 1)
		if text == players {
			t.Fatalf("%s is not in the bundle", c.replace)
		}
		if _, err := ParseBundle("bundle.json", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.by, err, c.want)
		}
	}
}
