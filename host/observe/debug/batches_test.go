package debug

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

var someBatch = Batch{
	Step: 12, Micro: 1, Seed: -5,
	Tensors: []ring.Tensor{
		{Name: "lengths", DType: manifest.I32, Shape: []int{2}, Offset: 4},
		{Name: "voiced", DType: manifest.Bool, Shape: []int{2, 1}, Offset: 1},
	},
	Slot: []byte{9, 1, 0, 9, 7, 0, 0, 0, 8, 0, 0, 0},
}

func TestBatch(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "batches"), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Batch(someBatch); err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Open(filepath.Join(dir, "batches", "000012-01.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if seed := file.Metadata()["seed"]; seed != "-5" {
		t.Errorf("seed %q", seed)
	}
	for name, want := range map[string][]byte{"lengths": {7, 0, 0, 0, 8, 0, 0, 0}, "voiced": {1, 0}} {
		got := make([]byte, len(want))
		if err := file.Read(name, got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, want)
		}
	}

	if err := os.RemoveAll(filepath.Join(dir, "batches")); err != nil {
		t.Fatal(err)
	}
	if err := f.Batch(someBatch); err == nil {
		t.Error("a batch that cannot be written is not an error")
	}
}

func TestBatchesAreNotWantedByDefault(t *testing.T) {
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Batch(someBatch); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "batches")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
