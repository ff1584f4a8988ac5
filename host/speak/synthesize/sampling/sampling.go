// Package sampling chooses the next code of a sequence from the logits of all codes.
//
// The order of operations is that of generate() of Hugging Face's transformers: the repetition penalty (Keskar et al.
// 2019), the temperature, the K most probable codes (Fan et al. 2018), and of these the smallest set with a probability
// of P (Holtzman et al. 2019). Then a code is drawn.
package sampling

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// Settings configure a Sampler.
type Settings struct {
	// Temperature divides the logits. With 0, the most probable code is chosen, and TopK and TopP have no effect.
	Temperature float64
	// TopK is the number of codes to choose from; 0 means all.
	TopK int
	// TopP is the probability of the codes to choose from; 1 means all.
	TopP float64
	// RepetitionPenalty divides the positive logits of earlier codes, and multiplies the negative ones; 1 means none.
	RepetitionPenalty float64
	// Seed and Sequence determine the random numbers.
	Seed, Sequence uint64
}

// Sampler chooses the codes of one sequence. Equal settings and logits give equal codes.
type Sampler struct {
	Settings
	random *rand.Rand
	chosen map[int]bool
	scores []candidate
}

// candidate is a code with its score, and later its probability.
type candidate struct {
	code  int
	score float64
}

// ErrNotFinite says that the logits have no largest one.
var ErrNotFinite = errors.New("the logits of the next code are not finite")

// New returns a sampler. The prompt are codes that the repetition penalty counts as chosen.
func New(s Settings, prompt []int) *Sampler {
	chosen := map[int]bool{}
	for _, code := range prompt {
		chosen[code] = true
	}
	return &Sampler{Settings: s, random: rand.New(rand.NewPCG(s.Seed, s.Sequence)), chosen: chosen}
}

// Next chooses a code.
func (s *Sampler) Next(logits []float32) (int, error) {
	s.scores = s.scores[:0]
	for code, x := range logits {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return 0, ErrNotFinite
		}
		s.scores = append(s.scores, candidate{code, s.penalize(code, x)})
	}
	// Of equal scores, the lowest code comes first, as argmax has it.
	slices.SortStableFunc(s.scores, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	code := s.scores[0].code
	if s.Temperature > 0 {
		code = s.draw(s.nucleus(s.most(s.scores)))
	}
	s.chosen[code] = true
	return code, nil
}

// penalize computes in single precision, as transformers does.
func (s *Sampler) penalize(code int, x float32) float64 {
	if penalty := float32(s.RepetitionPenalty); s.chosen[code] && x < 0 {
		x *= penalty
	} else if s.chosen[code] {
		x /= penalty
	}
	if s.Temperature > 0 {
		x /= float32(s.Temperature)
	}
	return float64(x)
}

// most returns the TopK first candidates, and those whose score is that of the last of them.
func (s *Sampler) most(sorted []candidate) []candidate {
	if s.TopK <= 0 || s.TopK >= len(sorted) {
		return sorted
	}
	n := s.TopK
	for n < len(sorted) && sorted[n].score == sorted[s.TopK-1].score {
		n++
	}
	return sorted[:n]
}

// nucleus turns scores into probabilities, and leaves out the candidates whose probability and that of all after them
// is at most 1 - TopP. One candidate stays.
func (s *Sampler) nucleus(sorted []candidate) []candidate {
	total, highest := 0.0, sorted[0].score
	for i := range sorted {
		sorted[i].score = math.Exp(sorted[i].score - highest)
		total += sorted[i].score
	}
	rest := 0.0
	for n := len(sorted); n > 1; n-- {
		if rest += sorted[n-1].score / total; rest > 1-s.TopP || s.TopP >= 1 {
			return sorted[:n]
		}
	}
	return sorted[:1]
}

// draw chooses a candidate by its probability.
func (s *Sampler) draw(of []candidate) int {
	total := 0.0
	for _, c := range of {
		total += c.score
	}
	at := s.random.Float64() * total
	for _, c := range of {
		if at -= c.score; at < 0 {
			return c.code
		}
	}
	return of[0].code // rounding
}
