package train

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// prove proves the kernels of each bucket, and compares each fused graph of the player, or of evaluation, with the
// graph as exported, all results: on one batch, with a row of full length and an empty one. Regions whose kernels are
// faulty stay plain. Afterwards the graph as exported is closed.
func (t *trial) prove() error {
	f := t.fusion
	if f == nil || f.exported == nil {
		return nil
	}
	began := time.Now()
	gradients, err := ort.NewBuffer(max(1, t.grads.size)) // evaluation has none
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
			return hint.Errorf("train with --fuse off", "prove the fused graph of %s, bucket %d: %w",
				t.fusion.config.Name, bucket, err)
		}
	}
	return nil
}

// comparisons is on how many batches the fused graph must be too far away.
const comparisons = 3

// proveBucket compares the fused graph of a bucket with the graph as exported, and proves its kernels, each by itself.
// If one is wrong, it compares the graph with the others. It uses memory for gradients.
func (t *trial) proveBucket(bucket int, gradients []byte) error {
	f := t.fusion
	for round := 0; ; round++ {
		want, err := t.reference(bucket, gradients)
		if err != nil {
			return err
		}
		fault, err := t.check(f.sessions[bucket], bucket, want)
		if err != nil {
			return err
		}
		found := false
		if round == 0 {
			for _, name := range want.unproved(t) {
				f.unproved[name] = true
			}
			if found, err = t.proveRegions(bucket, want.batch, fault == nil); err != nil {
				return err
			}
		}
		switch {
		case found:
			if err := f.rebind(bucket, f.open(bucket)); err != nil {
				return err
			}
		case fault == nil:
			return nil
		case round == comparisons:
			f.distrusted[bucket] = fault
			return f.rebind(bucket, f.model.open(f.config, false))
		}
	}
}

var errDiffers = errors.New("its results are not those of the graph as exported")

// check runs a session. The fault is that a kernel is not launched, or that the results differ from want by more than
// the tolerance, and by more than roundings explain.
func (t *trial) check(s *ort.Session, bucket int, want *reference) (fault, err error) {
	d, err := t.distance(s, bucket, want)
	if errors.Is(err, ort.ErrLaunch) {
		return err, t.alive(err)
	}
	f := t.fusion
	tolerance := f.tolerance
	f.roundings[bucket] = 0
	if f.distances[bucket] = d.all; err != nil || d.all <= tolerance && d.loss <= min(tolerance, toleranceBF16) {
		return nil, err
	}
	rounding, err := t.rounding(bucket, want)
	if f.roundings[bucket] = rounding.all; err != nil {
		return nil, err
	}
	all, loss := explained*max(rounding.all, float64(f.unit)), explained*max(rounding.loss, float64(f.unit))
	if all >= 1 { // even zeros are no further away
		f.unproved[fmt.Sprintf("bucket %d: the graph as a whole", bucket)] = true
	}
	if d.all <= max(tolerance, all) && d.loss <= max(min(tolerance, toleranceBF16), loss) {
		return nil, nil
	}
	f.distances[bucket] = 0
	return fmt.Errorf("%w: %.2g away, loss and weight %.2g, where roundings explain %.2g and %.2g",
		errDiffers, d.all, d.loss, all, loss), nil
}

// alive returns the error of a launch if nothing on the GPU works any more.
func (t *trial) alive(launch error) error {
	if gone := t.device.Compute.Synchronize(); gone != nil {
		return errors.Join(launch, gone)
	}
	return nil
}

// apartness is how far results are from others: all of them, and the loss with its weight.
type apartness struct{ all, loss float64 }

// distance runs a session and compares its results with want.
func (t *trial) distance(s *ort.Session, bucket int, want *reference) (d apartness, err error) {
	// The gradients of the other graph are still there: a kernel that leaves some out must not pass.
	if err := errors.Join(clearGradients(t), clearState(t)); err != nil {
		return d, err
	}
	scalars, err := t.scalars(t.execution(s, t.fusion.inputs[0][bucket], t.fusion.outputs))
	if err != nil {
		return d, err
	}
	gradients, err := t.compareGradients(want.gradients)
	if err != nil {
		return d, err
	}
	state, err := compareState(t, want.state)
	if err != nil {
		return d, err
	}
	share := t.fusion.share
	d.all = max(largest(gradients, share), largest(state, share))
	loss := difference{norm: float64(want.scalars[0]) * float64(want.scalars[0])} // a metric may be zero
	for i := range scalars {
		own := largest([]difference{loss, between(scalars[i:i+1], want.scalars[i:i+1])}, 1e-3)
		if i < 2 { // loss and weight
			d.loss = max(d.loss, own)
		}
		d.all = max(d.all, own)
	}
	return d, nil
}

// explained is how many times as far as [trial.rounding] a fused graph may be: its roundings are others, at more places
// than the weights.
const explained = 16

// rounding is how far the results of the graph as exported move if each weight moves by a rounding of the precision: as
// far as those of any other order of the same arithmetic may be. Many layers in a row can amplify that without limit.
func (t *trial) rounding(bucket int, want *reference) (apartness, error) {
	var kept [][]float32
	for _, v := range t.variables() {
		kept = append(kept, slices.Clone(v.values))
		for i := range v.values {
			v.values[i] *= 1 + t.fusion.unit*float32(2*t.random.IntN(2)-1)
		}
		if err := v.send(); err != nil {
			return apartness{}, err
		}
	}
	d, err := t.distance(t.fusion.exported, bucket, want)
	for i, v := range t.variables() {
		copy(v.values, kept[i])
		err = errors.Join(err, v.send())
	}
	return d, err
}

// clearGradients forgets those of the run before. Evaluation has none.
func clearGradients(t *trial) error {
	if t.grads.size == 0 {
		return nil
	}
	return t.device.Compute.Clear(t.grads.dev, 0, t.grads.size)
}

// accuracy says how far a fused graph usually is from the graph as exported, relative to the norm of a result.
type accuracy struct {
	tolerance float64
	// share is that of all gradients below which the norm of one does not count: a gradient that is zero, such as that
	// of the bias of keys, has only the rounding of others.
	share float64
	unit  float32 // how far a rounding moves a weight
}

// Sums are added in another order. Products in TF32 round their operands, which then differ, to 10 bits. In bf16 a
// fused graph rounds less often: the gradients of queries and keys, which are differences of almost equal numbers, have
// differed by up to 0.1 with random weights, where the losses of 60 steps agreed to 4e-5.
var (
	accuracyF32  = accuracy{1e-5, 1e-6, 0x1p-23}
	accuracyTF32 = accuracy{1e-2, 1e-3, 0x1p-11}
	accuracyBF16 = accuracy{0.25, 1e-3, 0x1p-8}
)

// findAccuracy finds that of the graph's precision. The plans must be made.
func (f *fusedGraphs) findAccuracy() {
	m := f.model
	switch {
	case f.player.program.Precision == string(manifest.BF16) || f.narrowed() > 0:
		f.accuracy = accuracyBF16
	case m.device.CUDA != nil && m.device.CUDA.TF32:
		f.accuracy = accuracyTF32
	default:
		f.accuracy = accuracyF32
	}
}

// scalars runs once and returns loss, weight and the graph's metrics.
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
		if t.returns(i) {
			list = append(list, float32(v))
		}
	}
	return list, nil
}
