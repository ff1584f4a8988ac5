package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// TestDebugDirHasTheTrainingBatches: one file per micro-batch, with every input of the graph and none for evaluations.
func TestDebugDirHasTheTrainingBatches(t *testing.T) {
	batches := filepath.Join(t.TempDir(), "batches")
	if err := os.Mkdir(batches, 0o777); err != nil {
		t.Fatal(err)
	}
	mustTrain(t, "--debug-dir", filepath.Dir(batches), "--max-steps", "2", "--accumulate", "2", "--eval-every", "1")
	entries, err := os.ReadDir(batches)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	want := []string{"000001-00.safetensors", "000001-01.safetensors", "000002-00.safetensors", "000002-01.safetensors"}
	if !slices.Equal(names, want) {
		t.Fatalf("%v, want %v", names, want)
	}
	bundle, err := ortgraphs.Load(pico)
	if err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Open(filepath.Join(batches, names[3]))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, in := range bundle.Manifest.Inputs {
		if _, ok := file.Tensor(in.Name); !ok {
			t.Errorf("no %s", in.Name)
		}
	}
	if n := len(file.Tensors()); n != len(bundle.Manifest.Inputs) {
		t.Errorf("%d tensors, the graph has %d inputs", n, len(bundle.Manifest.Inputs))
	}
}
