package train

import (
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// group has the values of a parameter group.
type group struct {
	factor float64 // of the learning rate
	decay  float64 // weight decay
}

// groupOf returns the values of parameters with a role.
func groupOf(p manifest.Optimizer, r ortgraphs.Role) group {
	g := group{factor: 1}
	if r.Decay {
		g.decay = p.WeightDecay
	}
	if r.Group == 0 {
		return g
	}
	own := p.Groups[r.Group-1]
	if own.LRFactor != nil {
		g.factor = *own.LRFactor
	}
	if own.WeightDecay != nil {
		g.decay = *own.WeightDecay
	}
	return g
}

// rates are the inputs of an update that depend on the group.
type rates struct{ lr, weightDecay *ort.Tensor }

// rates returns the inputs of a group.
func (s *scalars) rates(m *memory, g group) rates {
	r := rates{s.lr.tensor, s.constant(m, g.decay)}
	if g.factor == 1 {
		return r
	}
	w, ok := s.factored[g.factor]
	if !ok {
		w = newWord[float64](m, s.in, manifest.F64)
		s.factored[g.factor] = w
	}
	r.lr = w.tensor
	return r
}

// setRate writes the learning rates of all groups.
func (s *scalars) setRate(lr float64) {
	*s.lr.value = lr
	for factor, w := range s.factored {
		*w.value = lr * factor
	}
}
