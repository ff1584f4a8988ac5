package run

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// withPlayers returns pico with two players, which share its loss.
func withPlayers(t *testing.T) string {
	t.Helper()
	return bundletest.WithPlayers(t, pico, func(name string) bool {
		return strings.HasPrefix(name, "text_encoder.") || name == "metric.stop_loss"
	}, nil).Dir
}

// TestPlayersAreResumed: a run of two players that is continued from a checkpoint is the undisturbed run again, to the
// bit.
func TestPlayersAreResumed(t *testing.T) {
	flags := []string{
		"--graph", withPlayers(t), "--accumulate", "2", "--max-steps", "6", "--checkpoint-every", "2", "--keep-last",
		"9", "--ema", "0.9",
	}
	want := mustTrain(t, flags...)
	again := t.TempDir() + "/run"
	if err := os.CopyFS(again, os.DirFS(want)); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, "--resume", again+"@2"); err != nil {
		t.Fatal(err)
	}
	if got := losses(t, again); len(got) != 6 || !slices.Equal(got, losses(t, want)) ||
		!strings.Contains(got[0], `"grad_norm.first":`) {
		t.Errorf("lines of metrics.jsonl:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(losses(t, want), "\n"))
	}
	if got, want := checkpoints(t, again), checkpoints(t, want); !maps.Equal(got, want) {
		t.Errorf("checkpoints %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	r := readReport(t, again)
	all := r.Parameters
	if len(all.Players) != 2 || all.Players[0].Player != bundletest.First || all.Players[0].Trained.Values == 0 ||
		all.Players[0].Trained.Values+all.Players[1].Trained.Values != all.Trained.Values ||
		all.Players[0].MomentsBytes+all.Players[1].MomentsBytes != all.MomentsBytes {
		t.Errorf("parameters in report.json: %+v", all)
	}
	if r.Graphs[0].Player != bundletest.First || r.Graphs[1].Player != bundletest.Second || r.Graphs[2].Player != "" ||
		r.Graphs[2].Use != report.Evaluating {
		t.Errorf("graphs in report.json: %+v", r.Graphs)
	}
	c, err := checkpoint.Load(checkpoint.NewStore(again).Path(6))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, player := range []string{bundletest.First, bundletest.Second} {
		if weights, average := c.State.Updates(player); weights != 6 || average != 6 {
			t.Errorf("%s: %d updates, %d of the average", player, weights, average)
		}
	}
}

// TestPlayersHaveSchedules: each player has a schedule of its own. A resumed run has their rates, and what lowered
// them.
func TestPlayersHaveSchedules(t *testing.T) {
	graph := bundletest.Rewrite(t, withPlayers(t), func(_ string, m *manifest.Bundle) {
		m.Players[0].Schedule = &manifest.Schedule{Name: "plateau"}
		m.Players[1].Optimizer.LR, m.Schedule = 0.5, manifest.Schedule{Name: "exponential", WarmupSteps: 3}
	}).Dir
	flags := []string{
		"--graph", graph, "--max-steps", "14", "--eval-every", "2", "--plateau-patience", "1", "--plateau-factor",
		"0.1", "--checkpoint-every", "7", "--keep-last", "9",
	}
	var out bytes.Buffer
	want, err := trainPico(t, console.Console{Out: &out}, flags...)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"first: adamw, learning rate 0.003, plateau, times 0.1",
		"second: adamw, learning rate 0.5, exponential, times 0.9999 a step after 3 steps",
		"learning rate of first lowered to 0.0003",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, &out)
		}
	}
	steps := losses(t, want)
	if !strings.Contains(steps[0], `"lr.first":0.003`) || strings.Contains(steps[13], `"lr.first":0.003`) {
		t.Errorf("learning rates in\n%s", strings.Join(steps, "\n"))
	}
	again := t.TempDir() + "/run"
	if err := os.CopyFS(again, os.DirFS(want)); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, "--resume", again+"@7"); err != nil {
		t.Fatal(err)
	}
	if got := losses(t, again); !slices.Equal(got, steps) {
		t.Errorf("resumed:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(steps, "\n"))
	}
	if got, want := checkpoints(t, again), checkpoints(t, want); !maps.Equal(got, want) {
		t.Errorf("checkpoints %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	_, err = resume(t, "--resume", again, "--schedule", "cosine")
	if exit.Code(err) != 2 || !strings.Contains(
		err.Error(), "\n  schedule/first: plateau -> cosine\n  schedule/second: exponential -> cosine",
	) {
		t.Errorf("another schedule: %v", err)
	}
}

// TestLastPlayerAtRateZero: a bundle may leave the last player as it is. A rate of the run then is that of this player
// alone.
func TestLastPlayerAtRateZero(t *testing.T) {
	graph := bundletest.Rewrite(t, withPlayers(t),
		func(_ string, m *manifest.Bundle) { m.Players[1].Optimizer.LR = 0 }).Dir
	flags := []string{"--graph", graph, "--max-steps", "2", "--schedule", "constant", "--warmup-steps", "0"}
	for set, want := range map[string]string{
		"": `"lr":0,"lr.first":0.003`, "--lr=0.002": `"lr":0.002,"lr.first":0.003`,
	} {
		run := mustTrain(t, append(flags, strings.Fields(set)...)...)
		got := losses(t, run)
		if len(got) != 2 || !strings.Contains(got[1], want) || strings.Contains(got[1], `"skipped"`) {
			t.Errorf("%s: %q", set, got)
		}
	}
}

// TestPlayersAreRefused: settings with which a player would not train, or the batches of a step cannot be held.
func TestPlayersAreRefused(t *testing.T) {
	graph := withPlayers(t)
	for _, c := range []struct {
		flags         []string
		error, advice string
	}{
		{
			[]string{"--freeze", "text_encoder"}, "--freeze and --train-only freeze all parameters of the player first",
			"leave it a parameter to train",
		},
		{[]string{"--lr", "0"}, "--lr 0: a model learns with a rate above 0 only", "leave --lr out"},
		{
			[]string{"--accumulate", "4", "--slots", "3"}, "3 device slots cannot hold the 4 batches of a step",
			"leave --slots out",
		},
	} {
		dir, err := trainPico(t, console.Console{},
			append([]string{"--graph", graph, "--max-steps", "2"}, c.flags...)...)
		if exit.Code(err) != 2 || !strings.Contains(err.Error(), c.error) ||
			!strings.Contains(exit.Hint(err), c.advice) {
			t.Errorf("%v: %v; %s", c.flags, err, exit.Hint(err))
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v: the run folder is there: %v", c.flags, err)
		}
	}
}
