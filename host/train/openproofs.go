package train

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// proofsAhead is how many proofs are open, or being opened, at a time: each takes seconds of one thread, and memory.
const proofsAhead = 4

// openProofs are the proofs of a player's buckets, which are opened beside other work, the largest bucket first.
type openProofs struct {
	waiting []int            // buckets that are not begun
	begun   map[int]*opening // by bucket
}

// opening is a proof that is being opened. The others are set when done is closed.
type opening struct {
	done    chan struct{}
	proof   *fused.Proof // nil if no kernel can be proved
	session *ort.Session
	err     error
}

// beginProofs opens the proofs of the buckets that are not remembered.
func (f *fusedGraphs) beginProofs() {
	if f.model.err != nil {
		return
	}
	f.proving.begun = map[int]*opening{}
	for bucket := len(f.plans) - 1; bucket >= 0; bucket-- {
		if f.proofs == nil || f.proofs.Proved(f.proofKey(bucket)) == nil {
			f.proving.waiting = append(f.proving.waiting, bucket)
		}
	}
	f.model.add(f.closeProofs)
	f.continueProofs()
}

// continueProofs begins with as many more proofs as may be open.
func (f *fusedGraphs) continueProofs() {
	for p := &f.proving; len(p.begun) < proofsAhead && len(p.waiting) > 0; p.waiting = p.waiting[1:] {
		f.beginProof(p.waiting[0])
	}
}

// beginProof opens the proof of a bucket's kernels that are not known to be faulty.
func (f *fusedGraphs) beginProof(bucket int) {
	m, o := f.model, &opening{done: make(chan struct{})}
	f.proving.begun[bucket] = o
	plain := maps.Clone(f.faults[bucket])
	c := m.configured(f.config, false)
	c.Name = fmt.Sprintf("%s, bucket %d, proof", c.Name, bucket)
	go func() {
		defer close(o.done)
		o.proof, o.err = f.plans[bucket].LinkProof(
			func(region int) bool { return plain[region] != nil }, m.device.CUDA != nil && m.device.CUDA.TF32)
		if o.err != nil || o.proof == nil {
			return
		}
		c.Model, c.Kernels, c.Unoptimized = o.proof.Model, o.proof.Kernels, true
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if m.device.Context != nil {
			o.err = m.device.Context.Bind()
		}
		if o.err == nil {
			o.session, o.err = ort.NewSession(c)
		}
	}()
}

// takeProof returns the open proof of a bucket, whose session is then the memory's; nil if no kernel can be proved.
func (f *fusedGraphs) takeProof(bucket int) (*ort.Session, *fused.Proof, error) {
	p := &f.proving
	p.waiting = slices.DeleteFunc(p.waiting, func(b int) bool { return b == bucket })
	if p.begun[bucket] == nil {
		f.beginProof(bucket)
	}
	o := p.begun[bucket]
	<-o.done
	delete(p.begun, bucket)
	f.continueProofs()
	if o.session != nil {
		f.model.own(o.session)
	}
	return o.session, o.proof, o.err
}

// closeProofs closes those that were not taken. It is idempotent.
func (f *fusedGraphs) closeProofs() (err error) {
	f.proving.waiting = nil
	for bucket, o := range f.proving.begun {
		<-o.done
		if o.session != nil {
			err = errors.Join(err, o.session.Close())
		}
		delete(f.proving.begun, bucket)
	}
	return err
}
