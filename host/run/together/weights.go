package together

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// checkedEvery is the number of steps after which the ranks compare their weights.
const checkedEvery = 1000

// Ready waits until all ranks are ready to train with the same libraries, the same kind of update and the same weights.
// q takes the notes of the others from now on.
func (r *Ranks) Ready(q *batch.Quarantine, m *train.Model, update string, step int64) error {
	if r == nil {
		return nil
	}
	r.quarantine.Store(q)
	if err := r.Group.Agree(map[string]string{"ONNX Runtime": ort.Version(), "the update": update}); err != nil {
		return err
	}
	return r.compare(m, step)
}

// Step compares the weights of all ranks after the first step of the process, and after every thousandth of the run. It
// returns a *DifferError that names a rank with others. It also counts what all have left out of the step.
func (r *Ranks) Step(m *train.Model, s *event.Step) error {
	if r == nil {
		return nil
	}
	if r.notes.step(s.LeftOut); r.stepped && s.Step%checkedEvery != 0 {
		return nil
	}
	r.stepped = true
	return r.compare(m, s.Step)
}

// DifferError says that a rank has other weights than rank 0. What was trained since step Agreed is of no use.
type DifferError struct {
	Step, Agreed int64
	Rank         int
	Parameter    string // the first that differs
}

func (e *DifferError) Error() string {
	return fmt.Sprintf("after step %d, rank %d has other weights than rank 0: %q differs", e.Step, e.Rank, e.Parameter)
}

// Hint implements the interface of package hint.
func (e *DifferError) Hint() string {
	return fmt.Sprintf("continue all ranks from a checkpoint of step %d or before with --resume RUN@STEP, on "+
		"processors and GPUs of one kind; if it happens again there, the memory or the GPU of that machine may be "+
		"faulty", e.Agreed)
}

// compare returns a *DifferError that names a rank whose weights are not those of rank 0, and the first parameter. The
// checksums find faults, not malice.
func (r *Ranks) compare(m *train.Model, step int64) error {
	if err := m.Pull(); err != nil {
		return err
	}
	weights := m.Weights()
	all, err := r.All(checksums(weights))
	if err != nil {
		return err
	}
	for rank, own := range all {
		if at := differs(all[0], own); at >= 0 {
			return &DifferError{step, r.agreed, rank, weights[min(at, len(weights)-1)].Name}
		}
	}
	r.agreed = step
	return nil
}

func checksums(weights []checkpoint.Tensor) (sums []byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for _, w := range weights {
		sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(w.Data, table))
	}
	return sums
}

// differs returns the place of the first checksum that differs, or -1.
func differs(a, b []byte) int {
	for i := 0; i < max(len(a), len(b)); i += 4 {
		if i >= len(a) || i >= len(b) || [4]byte(a[i:]) != [4]byte(b[i:]) {
			return i / 4
		}
	}
	return -1
}

// Differs reports whether an error says that a rank has other weights: they must not be saved.
func Differs(err error) bool {
	_, ok := errors.AsType[*DifferError](err)
	return ok
}
