package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// maxWrong is how many wrong kernels a bucket may have before it runs as exported as a whole.
const maxWrong = 8

// prove compares each fused graph with the graph as exported: all results of one batch, which has lengths of all kinds and an empty row.
// Regions whose kernels are wrong stay plain. Afterwards the graph as exported is closed.
func (t *trial) prove() error {
	f := t.fusion
	if f == nil || f.exported == nil {
		return nil
	}
	for _, bucket := range t.order {
		if err := t.fill(0, bucket, true); err != nil {
			return err
		}
		*t.seeds[0].value = t.random.Int64()
		if err := t.proveBucket(bucket); err != nil {
			return fmt.Errorf("prove the fused training graph of bucket %d: %w", bucket, err)
		}
	}
	t.grads.host = nil
	if slices.Contains(f.sessions, f.exported) {
		return nil
	}
	t.sessions = slices.DeleteFunc(t.sessions, func(s *ort.Session) bool { return s == f.exported })
	err := f.exported.Close()
	f.exported = nil
	return errors.Join(err, t.Shrink())
}

// proveBucket finds the wrong kernels of a bucket.
func (t *trial) proveBucket(bucket int) error {
	f := t.fusion
	want, err := t.everything(t.execution(f.exported, f.inputs[0][bucket], f.outputs))
	if err != nil {
		return tooLarge(bucket, err)
	}
	for range maxWrong {
		wrong, err := t.wrong(f.sessions[bucket], bucket, want)
		if err != nil {
			return tooLarge(bucket, err)
		}
		if !wrong {
			return nil
		}
		region, err := t.findWrong(bucket, want)
		if err != nil {
			return err
		}
		if region < 0 {
			break
		}
		f.plain[bucket][region] = true
		f.rebind(bucket, f.open(bucket, nil))
		if t.err != nil {
			return t.err
		}
	}
	if wrong, err := t.wrong(f.sessions[bucket], bucket, want); err != nil || !wrong {
		return err
	}
	f.distrusted = append(f.distrusted, bucket)
	f.rebind(bucket, f.exported)
	return t.err
}

func tooLarge(bucket int, err error) error {
	if errors.Is(err, ort.ErrOutOfMemory) {
		return &TooLargeError{bucket, err}
	}
	return err
}

// findWrong returns the first region without which, and without all after it, the results are right; -1 if there is none.
func (t *trial) findWrong(bucket int, want [][]float32) (int, error) {
	f := t.fusion
	right, wrong := 0, f.plans[bucket].Regions() // kernels of regions below right give right results
	for n := right; ; n = (right + wrong) / 2 {
		s := f.open(bucket, func(region int) bool { return region >= n })
		if t.err != nil {
			return 0, t.err
		}
		differs, err := t.wrong(s, bucket, want)
		if err != nil {
			return 0, err
		}
		t.sessions = slices.DeleteFunc(t.sessions, func(other *ort.Session) bool { return other == s })
		if err := s.Close(); err != nil {
			return 0, err
		}
		switch {
		case n == 0 && differs:
			return -1, nil // the graph differs without any kernel
		case differs:
			wrong = n
		default:
			right = n
		}
		if wrong-right <= 1 {
			return right, nil
		}
	}
}

// wrong reports whether a session gives other results than want.
func (t *trial) wrong(s *ort.Session, bucket int, want [][]float32) (bool, error) {
	got, err := t.everything(t.execution(s, t.fusion.inputs[0][bucket], t.fusion.outputs))
	if err != nil {
		return false, err
	}
	d := distance(got, want)
	t.fusion.distances[bucket] = d
	return !(d <= t.fusedTolerance()), nil
}

// Tolerances of a fused graph, relative to the norm of a result: sums have another order. Products in TF32 round their operands, which
// then differ, to 10 bits; in bf16, a fused graph rounds less often.
const (
	fusedTolerance     = 1e-5
	fusedToleranceTF32 = 1e-2
	fusedToleranceBF16 = 1e-1
)

func (t *trial) fusedTolerance() float64 {
	switch {
	case t.precision == manifest.BF16:
		return fusedToleranceBF16
	case t.device.CUDA != nil && t.device.CUDA.TF32:
		return fusedToleranceTF32
	}
	return fusedTolerance
}

// everything runs once and returns all results: loss, weight, metrics and gradients.
func (t *trial) everything(e execution) ([][]float32, error) {
	if t.err != nil {
		return nil, t.err
	}
	r, err := t.compute(Training, e)
	if err != nil {
		return nil, err
	}
	scalars := []float32{float32(r.Loss), float32(r.Weight)}
	for _, v := range r.Metrics {
		scalars = append(scalars, float32(v))
	}
	if err := t.pull(&t.grads.block); err != nil {
		return nil, err
	}
	out := [][]float32{scalars}
	for i := range t.params {
		if at, ok := t.arena.Parameter(ortgraphs.Gradients, i); ok {
			out = append(out, numbers(t.grads.host[at.Offset:at.Offset+at.Bytes()], at.DType))
		}
	}
	return out, nil
}
