package debug

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Batch is a training batch as the model receives it.
type Batch struct {
	// Step counts from 1, Micro from 0 within the step's accumulation window.
	Step  int64
	Micro int
	// Seed is the graph input of that name.
	Seed int64
	// Tensors are the other graph inputs, in Slot.
	Tensors []ring.Tensor
	Slot    []byte
}

// Batch writes the batch to the folder batches. If the harness has not created this folder, it does nothing: the
// batches of a long run fill a disk.
func (f *Folder) Batch(b Batch) (err error) {
	if f == nil || !f.batches {
		return nil
	}
	tensors := make([]safetensors.Tensor, len(b.Tensors))
	for i, t := range b.Tensors {
		tensors[i] = safetensors.Tensor{
			Name: t.Name, DType: safetensors.TypeOf(t.DType), Shape: t.Shape,
			Data: b.Slot[t.Offset : t.Offset+t.Bytes()],
		}
	}
	file, err := files.In(f.dir, batchesFolder, fmt.Sprintf("%06d-%02d.safetensors", b.Step, b.Micro)).Fresh()
	if err != nil {
		return fmt.Errorf("--debug-dir: %w", err)
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			err = fmt.Errorf("--debug-dir: %w", err)
		}
	}()
	return safetensors.Write(file, tensors, map[string]string{"seed": strconv.FormatInt(b.Seed, 10)})
}

// hasBatches reports whether the harness has created the folder batches.
func hasBatches(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, batchesFolder))
	return err == nil && info.IsDir()
}
