package train

import (
	"errors"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// maxFaulty is how many faulty kernels of a bucket are searched before it runs as exported as a whole.
const maxFaulty = 8

// prove compares each fused graph of the player with the graph as exported: all results of one batch, with a row of
// full length and an empty one. Regions whose kernels are faulty stay plain. Afterwards the graph as exported is
// closed.
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
	restore, err := varyWeights(t)
	if err != nil {
		return err
	}
	restoreState, err := varyState(t)
	if err != nil {
		return err
	}
	if err := t.proveAll(gradients.Bytes()); err != nil {
		return err
	}
	if err := errors.Join(restore(), restoreState()); err != nil {
		return err
	}
	f.times.Proof = time.Since(began)
	if slices.Contains(f.sessions, f.exported) {
		return nil
	}
	err = closeSession(&t.memory, f.exported)
	f.exported = nil
	return errors.Join(err, t.Shrink())
}

// proveAll proves all buckets, the largest first. It uses memory for gradients.
func (t *trial) proveAll(gradients []byte) error {
	for _, bucket := range t.order {
		switch err := t.proveBucket(bucket, gradients); {
		case errors.Is(err, ort.ErrOutOfMemory):
			return &TooLargeError{bucket, err}
		case err != nil:
			return hint.Errorf("train with --fuse off", "prove the fused training graph of bucket %d: %w", bucket, err)
		}
	}
	return nil
}

// proveBucket finds the faulty kernels of a bucket. It uses memory for gradients.
func (t *trial) proveBucket(bucket int, gradients []byte) error {
	f := t.fusion
	want, err := t.reference(bucket, gradients)
	if err != nil {
		return err
	}
	for _, name := range want.unproved(t) {
		f.unproved[name] = true
	}
	for found := 0; ; found++ {
		fault, err := t.check(f.sessions[bucket], bucket, want)
		if err != nil || fault == nil {
			return err
		}
		region := -1
		if found < maxFaulty {
			if region, fault, err = t.findFaulty(bucket, want, fault); err != nil {
				return err
			}
		}
		if region < 0 {
			f.distrusted, f.distances[bucket] = append(f.distrusted, bucket), 0
			return f.rebind(bucket, f.exported)
		}
		f.faults[bucket][region] = fault
		if err := f.rebind(bucket, f.open(bucket, nil)); err != nil {
			return err
		}
	}
}

// findFaulty returns the first region without which, and without all after it, there is no fault, and the fault; -1 if
// there is none. fault is that of all kernels.
func (t *trial) findFaulty(bucket int, want *reference, fault error) (region int, _, err error) {
	right, wrong := 0, t.fusion.plans[bucket].Regions() // the kernels of regions below right have no fault
	for n := right; ; n = (right + wrong) / 2 {
		found, err := t.checkFirst(n, bucket, want)
		switch {
		case err != nil:
			return 0, nil, err
		case found != nil && n == 0:
			return -1, nil, nil // the graph differs without any kernel
		case found != nil:
			wrong, fault = n, found
		default:
			right = n
		}
		if wrong-right <= 1 {
			return right, fault, nil
		}
	}
}

// checkFirst checks the kernels of the first n regions.
func (t *trial) checkFirst(n, bucket int, want *reference) (fault, err error) {
	s := t.fusion.open(bucket, func(region int) bool { return region >= n })
	if t.err != nil {
		return nil, t.err
	}
	fault, err = t.check(s, bucket, want)
	return fault, errors.Join(err, closeSession(&t.memory, s))
}

var errDiffers = errors.New("its results are not those of the graph as exported")

// check runs a session. The fault is that a kernel is not launched, or that the results differ from want.
func (t *trial) check(s *ort.Session, bucket int, want *reference) (fault, err error) {
	// The gradients of the other graph are still there: a kernel that leaves some out must not pass.
	if err := errors.Join(t.device.Compute.Clear(t.grads.dev, 0, t.grads.size), clearState(t)); err != nil {
		return nil, err
	}
	scalars, err := t.scalars(t.execution(s, t.fusion.inputs[0][bucket], t.fusion.outputs))
	if errors.Is(err, ort.ErrLaunch) {
		if gone := t.device.Compute.Synchronize(); gone != nil { // nothing on the GPU works any more
			return nil, errors.Join(err, gone)
		}
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	gradients, err := t.compareGradients(want.gradients)
	if err != nil {
		return nil, err
	}
	state, err := compareState(t, want.state)
	if err != nil {
		return nil, err
	}
	tolerance, share := t.fusedTolerance()
	d, differs := max(largest(gradients, share), largest(state, share)), false
	loss := difference{norm: float64(want.scalars[0]) * float64(want.scalars[0])} // a metric may be zero
	for i := range scalars {
		own := largest([]difference{loss, between(scalars[i:i+1], want.scalars[i:i+1])}, 1e-3)
		if i < 2 { // loss and weight
			differs = differs || !(own <= min(tolerance, toleranceBF16))
		}
		d = max(d, own)
	}
	t.fusion.distances[bucket] = d
	if differs || !(d <= tolerance) {
		return errDiffers, nil
	}
	return nil, nil
}

// Tolerances of a fused graph, relative to the norm of a result: sums have another order. Products in TF32 round their
// operands, which then differ, to 10 bits. In bf16 a fused graph rounds less often: the gradients of queries and keys,
// which are differences of almost equal numbers, have differed by up to 0.1 with random weights, where the losses of 60
// steps agreed to 4e-5. A wrong kernel differs by about 1.
const (
	fusedTolerance     = 1e-5
	fusedToleranceTF32 = 1e-2
	fusedToleranceBF16 = 0.25
)

// fusedTolerance returns the tolerance, and the share of all gradients below which the norm of one does not count: a
// gradient that is zero, such as that of the bias of keys, has only the rounding of others.
func (t *trial) fusedTolerance() (tolerance, share float64) {
	switch {
	case t.precision == manifest.BF16 || t.fusion.narrowed() > 0:
		return fusedToleranceBF16, 1e-3
	case t.device.CUDA != nil && t.device.CUDA.TF32:
		return fusedToleranceTF32, 1e-3
	}
	return fusedTolerance, 1e-6
}

// owns reports whether a metric is one that the graph of the player returns.
func (t *trial) owns(metric int) bool { return t.players[t.owners[metric]] == t.player }

// scalars runs once and returns loss, weight and the player's metrics.
func (t *trial) scalars(e execution) ([]float32, error) {
	if t.err != nil {
		return nil, t.err
	}
	r, err := t.compute(Training, e)
	if err != nil {
		return nil, err
	}
	list := []float32{float32(r.Loss), float32(r.Weight)}
	for i, v := range r.Metrics {
		if t.owns(i) {
			list = append(list, float32(v))
		}
	}
	return list, nil
}
