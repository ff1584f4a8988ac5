// Package choice decides which rows of a training batch get which augmentations: p, one_of and some_of of the pipeline
// (docs/plugin-protocol.md, Choices). A choice depends on the row alone: on the run's seed, the epoch, the id of the
// clip, the name of the entry, and for a schedule on the optimizer step of the batch.
package choice

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Row is what a choice depends on.
type Row struct {
	Seed  int64 // of the run
	Epoch int
	Step  int64 // the optimizer step of the batch
	ID    string
}

// Gets reports whether the row gets the instance.
func (r Row) Gets(in *catalog.Instance) bool {
	if g := in.Group; g != nil {
		draws := r.draws(g.Name)
		if !r.passes(draws, g.P) || !selects(draws, g, in.Member) {
			return false
		}
	}
	return in.P == nil || r.passes(r.draws(in.Name), in.P)
}

// draws returns the generator of an entry for the row.
func (r Row) draws(entry string) *rand.Rand {
	key := dataset.ChoiceKey(r.Seed, r.Epoch, r.ID, entry)
	var seed [32]byte
	copy(seed[:], key[:])
	return rand.New(rand.NewChaCha8(seed))
}

// passes makes the one draw of p, also where p is 1.
func (r Row) passes(draws *rand.Rand, p *manifest.Probability) bool {
	u := draws.Float64()
	return p == nil || u < p.At(r.Step)
}

// selects makes the draws of a group after that of its p: one for one_of, and one more than there are members for
// some_of. It reports whether the member is among those that the row gets.
func selects(draws *rand.Rand, g *manifest.StageInstance, member int) bool {
	if g.OneOf != nil {
		return oneOf(draws.Float64(), g.OneOf) == member
	}
	n := g.Count.Low + int(draws.Float64()*float64(g.Count.High-g.Count.Low+1))
	each := make([]float64, len(g.SomeOf))
	for k := range each {
		each[k] = draws.Float64()
	}
	order := make([]int, len(each))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(each[a], each[b]) })
	return slices.Contains(order[:n], member)
}

// oneOf returns the first member at which the sum of the weights so far exceeds the share u of all. u is at most
// 1 - 2^-53, so that its product with the total is rounded to less than the total.
func oneOf(u float64, members []manifest.StageInstance) int {
	total, sum := 0.0, 0.0
	for _, m := range members {
		total += m.WeightOr1()
	}
	return slices.IndexFunc(members, func(m manifest.StageInstance) bool {
		sum += m.WeightOr1()
		return u*total < sum
	})
}
