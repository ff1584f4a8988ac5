package run

import (
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// TestStateGoesOnToTheSameBits: state is a part of a checkpoint, whatever is frozen and averaged, and --init takes it
// by its name.
func TestStateGoesOnToTheSameBits(t *testing.T) {
	graph := bundletest.Stateful(t, pico).Dir
	flags := func(steps string, more ...string) []string {
		return append([]string{
			"--plugins", plugins, "--graph", graph, "--train-data", clips, "--batch-size", "4", "--max-steps", steps,
			"--accumulate", "2", "--eval-every", "3", "--schedule", "constant", "--keep-last", "0", "--ema", "0.8",
			"--freeze", "text_encoder,mel_head.weight",
		}, more...)
	}
	train := func(args []string) {
		t.Helper()
		if _, err := resume(t, args...); err != nil {
			t.Fatal(err)
		}
	}
	whole, parts, begun := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run"),
		filepath.Join(t.TempDir(), "run")
	train(flags("6", "--run-dir", whole))
	train(flags("3", "--run-dir", parts))
	train(flags("6", "--resume", parts))
	a, b := checkpoints(t, whole), checkpoints(t, parts)
	for _, name := range []string{"params", "optimizer", "ema"} {
		if file := "step-000006/" + name + ".safetensors"; a[file] != b[file] {
			t.Errorf("resumed with state: %s differs", file)
		}
	}
	if n := batchesIn(t, filepath.Join(whole, "checkpoints/step-000006")); n != 12.5 {
		t.Errorf("the state has seen %v batches, want 0.5 more than 12", n)
	}
	train(flags("1", "--run-dir", begun, "--init", whole))
	if n := batchesIn(t, filepath.Join(begun, "checkpoints/step-000001")); n != 14.5 {
		t.Errorf("with --init the state has seen %v batches, want 2 more than 12.5", n)
	}
}

// batchesIn returns the count of the batches that the state of a checkpoint has seen.
func batchesIn(t *testing.T, dir string) float32 {
	t.Helper()
	c, err := checkpoint.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	data := make([]byte, 4)
	if err := c.Weights.Read(bundletest.StateCount, data); err != nil {
		t.Fatal(err)
	}
	if c.Averages == nil {
		t.Fatal("no average")
	} else if _, ok := c.Averages.Tensor(bundletest.StateCount); ok {
		t.Error("the average has state")
	}
	return ort.View[float32](data)[0]
}
