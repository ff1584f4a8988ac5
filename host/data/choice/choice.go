// Package choice decides which rows of a training batch get which augmentations: p, one_of and some_of of the pipeline
// (docs/plugin-protocol.md, Choices). A choice depends on the row alone: on the run's seed, the epoch, the id of the
// clip, the name of the entry (of the group, for one_of and some_of), and for a schedule on the optimizer step of the
// batch.
//
// The key of an entry is the first 16 bytes of the SHA-256 of the fields "choice", run seed, epoch, id of the clip and
// name of the entry, encoded as for row keys (docs/plugin-protocol.md, Row keys). It seeds a generator as Batch.Rand of
// the SDK does. The draws are a fixed number of Float64, in this order:
//
//   - A stage with p, also as a member of a group, draws u. The row gets the stage if u < p. A member of a group with a
//     p of its own makes this draw under its own name.
//   - one_of draws u and v. The row gets a member if u < p, where p is 1 without the key: the first at which the sum of
//     the weights so far is larger than v times the sum of all weights, in the order of the list.
//   - some_of of m members, with a count of l to h, draws u, v, and w_1 to w_m. The row gets members if u < p:
//     n = l + floor(v (h - l + 1)) of them, those with the smallest w. They run in the order of the list.
//
// An example: for seed 1, epoch 0, id LJ001-0001 and entry noise, the key is acb9ea48a6f4c28321d277599833364b, and the
// first five values are 0.41574114419367647, 0.18967844245741894, 0.18357651650469131, 0.48006648448553901 and
// 0.89927578586614354. So the row gets a stage noise with a p of 0.42 or more, the first of three members of a one_of
// of this name with the weights 1, 2 and 1, and one member, the first, of a some_of of three with a count of 1 to 3.
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
