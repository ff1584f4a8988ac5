package host

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/console"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
)

// withPlayers returns pico with two players, which share its loss.
func withPlayers(t *testing.T) string {
	t.Helper()
	return bundletest.WithPlayers(t, pico, func(name string) bool {
		return strings.HasPrefix(name, "text_encoder.") || name == "metric.stop_loss"
	}, nil).Dir
}

// TestPlayersAreResumed: a run of two players that is continued from a checkpoint is the undisturbed run again, to the bit.
func TestPlayersAreResumed(t *testing.T) {
	flags := []string{"--graph", withPlayers(t), "--accumulate", "2", "--max-steps", "6", "--checkpoint-every", "2", "--keep-last", "9", "--ema", "0.9"}
	want := mustTrain(t, flags...)
	again := t.TempDir() + "/run"
	if err := os.CopyFS(again, os.DirFS(want)); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, "--resume", again+"@2"); err != nil {
		t.Fatal(err)
	}
	if got := losses(t, again); len(got) != 6 || !slices.Equal(got, losses(t, want)) || !strings.Contains(got[0], `"grad_norm.first":`) {
		t.Errorf("lines of metrics.jsonl:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(losses(t, want), "\n"))
	}
	if got, want := checkpoints(t, again), checkpoints(t, want); !maps.Equal(got, want) {
		t.Errorf("checkpoints %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
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

// TestPlayersAreRefused: settings with which a player would not train, or the batches of a step cannot be held.
func TestPlayersAreRefused(t *testing.T) {
	graph := withPlayers(t)
	for _, c := range []struct {
		flags         []string
		error, advice string
	}{
		{[]string{"--freeze", "text_encoder"}, "--freeze and --train-only freeze all parameters of the player first", "leave it a parameter to train"},
		{[]string{"--accumulate", "4", "--slots", "3"}, "3 device slots cannot hold the 4 batches of a step", "leave --slots out"},
	} {
		dir, err := trainPico(t, console.Console{}, append([]string{"--graph", graph, "--max-steps", "2"}, c.flags...)...)
		if exit.Code(err) != 2 || !strings.Contains(err.Error(), c.error) || !strings.Contains(exit.Hint(err), c.advice) {
			t.Errorf("%v: %v; %s", c.flags, err, exit.Hint(err))
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v: the run folder is there: %v", c.flags, err)
		}
	}
}
