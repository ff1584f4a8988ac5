package train

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// maxWrong is how many wrong kernels a bucket may have before it runs as exported as a whole.
const maxWrong = 8

// prove compares each fused graph with the graph as exported: all results of one batch, with a row of full length and an empty one.
// Regions whose kernels are wrong stay plain. Afterwards the graph as exported is closed.
func (t *trial) prove() error {
	f := t.fusion
	if f == nil || f.exported == nil {
		return nil
	}
	began := time.Now()
	gradients, err := ort.NewBuffer(t.grads.size)
	if err != nil {
		return err
	}
	defer gradients.Close()
	for _, bucket := range t.order {
		if err := t.fill(0, bucket, true); err != nil {
			return err
		}
		*t.seeds[0].value = t.random.Int64()
		if err := t.proveBucket(bucket, gradients.Bytes()); err != nil {
			return fmt.Errorf("prove the fused training graph of bucket %d: %w", bucket, err)
		}
	}
	f.times.Proof = time.Since(began)
	if slices.Contains(f.sessions, f.exported) {
		return nil
	}
	t.sessions = slices.DeleteFunc(t.sessions, func(s *ort.Session) bool { return s == f.exported })
	err = f.exported.Close()
	f.exported = nil
	return errors.Join(err, t.Shrink())
}

// expected are the results of the graph as exported.
type expected struct {
	scalars   []float32 // loss, weight and metrics
	gradients []byte    // as in their arena
}

// proveBucket finds the wrong kernels of a bucket. It uses memory for gradients.
func (t *trial) proveBucket(bucket int, gradients []byte) error {
	f := t.fusion
	want := &expected{gradients: gradients}
	var err error
	if want.scalars, err = t.scalars(t.execution(f.exported, f.inputs[0][bucket], f.outputs)); err == nil {
		err = read(&t.memory, &t.grads.block, func(at int, data []byte) error {
			copy(gradients[at:], data)
			return nil
		})
	}
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
	f.distrusted, f.distances[bucket] = append(f.distrusted, bucket), 0
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
func (t *trial) findWrong(bucket int, want *expected) (int, error) {
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
func (t *trial) wrong(s *ort.Session, bucket int, want *expected) (bool, error) {
	// The gradients of the other graph are still there: a kernel that leaves some out must not pass.
	if err := t.device.Compute.Clear(t.grads.dev, 0, t.grads.size); err != nil {
		return false, err
	}
	scalars, err := t.scalars(t.execution(s, t.fusion.inputs[0][bucket], t.fusion.outputs))
	if err != nil {
		return false, err
	}
	gradients, err := t.compareGradients(want.gradients)
	if err != nil {
		return false, err
	}
	tolerance, share := t.fusedTolerance()
	d, wrong := largest(gradients, share), false
	loss := difference{norm: float64(want.scalars[0]) * float64(want.scalars[0])} // a metric may be zero
	for i := range scalars {
		own := largest([]difference{loss, between(scalars[i:i+1], want.scalars[i:i+1])}, 1e-3)
		if i < 2 { // loss and weight
			wrong = wrong || !(own <= min(tolerance, toleranceBF16))
		}
		d = max(d, own)
	}
	t.fusion.distances[bucket] = d
	return wrong || !(d <= tolerance), nil
}

// Tolerances of a fused graph, relative to the norm of a result: sums have another order. Products in TF32 round their operands, which
// then differ, to 10 bits. In bf16 a fused graph rounds less often: the gradients of queries and keys, which are differences of almost equal
// numbers, have differed by up to 0.1 with random weights, where the losses of 60 steps agreed to 4e-5. A wrong kernel differs by about 1.
const (
	fusedTolerance     = 1e-5
	fusedToleranceTF32 = 1e-2
	fusedToleranceBF16 = 0.25
)

// fusedTolerance returns the tolerance, and the share of all gradients below which the norm of one does not count: a gradient that is zero,
// such as that of the bias of keys, has only the rounding of others.
func (t *trial) fusedTolerance() (tolerance, share float64) {
	switch {
	case t.precision == manifest.BF16:
		return fusedToleranceBF16, 1e-3
	case t.device.CUDA != nil && t.device.CUDA.TF32:
		return fusedToleranceTF32, 1e-3
	}
	return fusedTolerance, 1e-6
}

// scalars runs once and returns loss, weight and metrics.
func (t *trial) scalars(e execution) ([]float32, error) {
	if t.err != nil {
		return nil, t.err
	}
	r, err := t.compute(Training, e)
	if err != nil {
		return nil, err
	}
	list := []float32{float32(r.Loss), float32(r.Weight)}
	for _, v := range r.Metrics {
		list = append(list, float32(v))
	}
	return list, nil
}
