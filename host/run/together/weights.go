package together

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// checkedEvery is the number of steps after which the ranks compare their weights.
const checkedEvery = 1000

// Ready waits until all ranks are ready to train with the same libraries and the same weights. q takes the notes of the
// others from now on.
func (r *Ranks) Ready(q *batch.Quarantine, m *train.Model, step int64) error {
	if r == nil {
		return nil
	}
	r.quarantine.Store(q)
	if err := r.Group.Agree(map[string]string{"ONNX Runtime": ort.Version()}); err != nil {
		return err
	}
	return r.compare(m, step)
}

// Step compares the weights of all ranks after some of the steps. It returns an error that names a rank with others.
func (r *Ranks) Step(m *train.Model, step int64) error {
	if r == nil || step%checkedEvery != 0 {
		return nil
	}
	return r.compare(m, step)
}

// compare returns an error that names a rank whose weights are not those of rank 0, and the first parameter. The
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
			return hint.Errorf("continue all ranks from a checkpoint with --resume; if it happens again, the memory "+
				"or the GPU of that machine may be faulty",
				"after step %d, rank %d has other weights than rank 0: %s differs", step, rank,
				strconv.Quote(weights[min(at, len(weights)-1)].Name))
		}
	}
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
