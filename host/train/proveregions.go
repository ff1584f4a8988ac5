package train

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// proofVersion changes when proofs of before are not worth what those of today are.
const proofVersion = 3

// proveRegions proves each kernel of a bucket by itself, beginning with the batch that is in the device slot, and adds
// to the bucket's faults. It reports whether it has found one. trust says that the whole graph is right: then what was
// proved before is not proved again, and a suspicion costs no kernel.
func (t *trial) proveRegions(bucket int, with synthetic, trust bool) (found bool, _ error) {
	f := t.fusion
	before := len(f.faults[bucket])
	var key [sha256.Size]byte
	if f.proofs != nil {
		key = f.proofKey(bucket)
	}
	if trust && f.proofs != nil && before == 0 {
		var unproved []string
		if json.Unmarshal(f.proofs.Proved(key), &unproved) == nil {
			f.leaveUnproved(bucket, unproved)
			return false, nil
		}
	}
	for {
		unproved, again, err := t.proveLaunched(bucket, with, trust)
		if err != nil {
			return false, err
		}
		if again {
			continue
		}
		f.leaveUnproved(bucket, unproved)
		found = len(f.faults[bucket]) > before
		if f.proofs == nil || found || before > 0 {
			return found, nil
		}
		proved, err := json.Marshal(unproved)
		if err == nil {
			f.proofs.Remember(key, proved)
		}
		return false, err
	}
}

// proofKey is the hash of all that decides whether a bucket's kernels are right, apart from the machine.
func (f *fusedGraphs) proofKey(bucket int) (key [sha256.Size]byte) {
	h := sha256.New()
	sizes := bucketSizes(f.model.inputs, &f.model.layouts[bucket])
	fmt.Fprintf(h, "%d %+v %v %x", proofVersion, f.form, sizes, sha256.Sum256(f.config.Model))
	for _, source := range f.plans[bucket].Sources() {
		fmt.Fprintf(h, " %x", sha256.Sum256([]byte(source)))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// leaveUnproved adds the names of results that prove nothing of their kernels.
func (f *fusedGraphs) leaveUnproved(bucket int, names []string) {
	for _, name := range names {
		f.unproved[fmt.Sprintf("bucket %d: %s", bucket, name)] = true
	}
}

// proveLaunched proves the kernels, and returns the results that prove nothing. If a kernel cannot be launched, it only
// adds that to the faults, and the others must be proved again.
func (t *trial) proveLaunched(bucket int, with synthetic, trust bool) (unproved []string, again bool, err error) {
	f := t.fusion
	s, proof, err := f.takeProof(bucket)
	if err != nil || s == nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, closeSession(&t.memory, s)) }()
	run, read, err := t.bindProof(s, bucket, proof)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, read.close()) }()
	verdict := fused.Trial{}
	if trust {
		verdict.Trusted = f.plans[bucket].Unlike
	}
	for round, more := 0, true; more; round++ {
		if round > 0 {
			if err := t.fill(0, bucket, with); err != nil {
				return nil, false, err
			}
			*t.seeds[0].value = t.random.Int64()
		}
		_, err := t.scalars(run)
		if errors.Is(err, ort.ErrLaunch) {
			if region := proof.Region(err); region >= 0 {
				f.convict(bucket, region, err)
				return nil, true, t.alive(err)
			}
		}
		if err != nil {
			return nil, false, err
		}
		values, err := read.values(&t.memory)
		if err != nil {
			return nil, false, err
		}
		verdicts := proof.Judge(values)
		for _, v := range verdicts {
			unproved = append(unproved, v.Unproved...)
		}
		more = verdict.Add(verdicts)
	}
	for region, fault := range verdict.Faults() {
		f.convict(bucket, region, fault)
	}
	slices.Sort(unproved)
	return slices.Compact(unproved), false, nil
}

// convict adds a fault of a kernel to those of all regions that have it.
func (f *fusedGraphs) convict(bucket, region int, fault error) {
	plan := f.plans[bucket]
	for _, same := range plan.Same(region) {
		if f.faults[bucket][same] == nil {
			f.faults[bucket][same] = fmt.Errorf("it has the kernel of %s: %w", plan.Describe(region), fault)
		}
	}
	f.faults[bucket][region] = fault
}

// measurements are what a proof has measured, on the GPU.
type measurements struct {
	block
	tensor *ort.Tensor
}

// bindProof binds a proof's session to the batch of the first device slot.
func (t *trial) bindProof(s *ort.Session, bucket int, proof *fused.Proof) (execution, *measurements, error) {
	m := &measurements{block: block{size: 8 * proof.Values}}
	var err error
	if m.dev, err = t.device.Context.Allocate(m.size); err != nil {
		return execution{}, nil, err
	}
	m.tensor, err = ort.NewTensorAt(t.device.place(), m.dev.Pointer(), m.size, manifest.I64, []int{proof.Values})
	if err != nil {
		return execution{}, nil, errors.Join(err, m.dev.Close())
	}
	outputs := tensors{fuse.ProofOutput: m.tensor}
	for name, tensor := range t.fusion.outputs {
		outputs[name] = tensor
	}
	run := t.execution(s, t.fusion.inputs[0][bucket], outputs)
	if t.err != nil {
		return execution{}, nil, errors.Join(t.err, m.close())
	}
	return run, m, nil
}

func (m *measurements) values(memory *memory) ([]byte, error) {
	err := memory.pull(&m.block)
	return m.host, err
}

func (m *measurements) close() error { return errors.Join(m.tensor.Close(), m.dev.Close()) }
