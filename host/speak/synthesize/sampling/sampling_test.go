package sampling

import (
	"math"
	"slices"
	"testing"
)

func logs(probabilities ...float64) (logits []float32) {
	for _, p := range probabilities {
		logits = append(logits, float32(math.Log(p)))
	}
	return logits
}

// shares draws often, and returns the share of each code.
func shares(t *testing.T, s Settings, logits []float32, prompt ...int) []float64 {
	t.Helper()
	const draws = 20000
	counts := make([]float64, len(logits))
	for i := range uint64(draws) {
		s.Sequence = i
		code, err := New(s, prompt).Next(logits)
		if err != nil {
			t.Fatal(err)
		}
		counts[code] += 1.0 / draws
	}
	return counts
}

func TestDistribution(t *testing.T) {
	all := Settings{Temperature: 1, TopP: 1, RepetitionPenalty: 1}
	with := func(change func(*Settings)) Settings { s := all; change(&s); return s }
	p := logs(0.1, 0.4, 0.2, 0.3)
	for name, tt := range map[string]struct {
		settings Settings
		logits   []float32
		prompt   []int
		want     []float64
	}{
		"as they are": {all, p, nil, []float64{0.1, 0.4, 0.2, 0.3}},
		"temperature": {
			with(func(s *Settings) { s.Temperature = 0.5 }), p, nil,
			[]float64{0.01 / 0.30, 0.16 / 0.30, 0.04 / 0.30, 0.09 / 0.30},
		},
		"top k": {with(func(s *Settings) { s.TopK = 2 }), p, nil, []float64{0, 4.0 / 7, 0, 3.0 / 7}},
		"top k of equals": {
			with(func(s *Settings) { s.TopK = 2 }), logs(0.4, 0.2, 0.2, 0.2), nil, []float64{0.4, 0.2, 0.2, 0.2},
		},
		"more than all":    {with(func(s *Settings) { s.TopK = 9 }), p, nil, []float64{0.1, 0.4, 0.2, 0.3}},
		"top p":            {with(func(s *Settings) { s.TopP = 0.65 }), p, nil, []float64{0, 4.0 / 7, 0, 3.0 / 7}},
		"top p of nothing": {with(func(s *Settings) { s.TopP = 0.01 }), p, nil, []float64{0, 1, 0, 0}},
		// After the two best, 0.4 and 0.3, the second has 3/7 of the rest.
		"top p after k": {with(func(s *Settings) { s.TopK, s.TopP = 2, 0.5 }), p, nil, []float64{0, 1, 0, 0}},
		// A negative logit is multiplied: ln 0.4 becomes ln 0.16.
		"repetition": {
			with(func(s *Settings) { s.RepetitionPenalty = 2 }), p, []int{1},
			[]float64{0.1 / 0.76, 0.16 / 0.76, 0.2 / 0.76, 0.3 / 0.76},
		},
		// A positive one is divided, before the temperature.
		"repetition of likely ones": {
			with(func(s *Settings) { s.RepetitionPenalty, s.Temperature = 2, 2 }), []float32{0, 4}, []int{1},
			[]float64{1 / (1 + math.E), math.E / (1 + math.E)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := shares(t, tt.settings, tt.logits, tt.prompt...)
			for code, want := range tt.want {
				if math.Abs(got[code]-want) > 0.015 || want == 0 && got[code] != 0 {
					t.Errorf("code %d: %.3f, want %.3f", code, got[code], want)
				}
			}
		})
	}
}

func TestGreedy(t *testing.T) {
	s := New(Settings{RepetitionPenalty: 10, TopK: 1, TopP: 0.1}, []int{3})
	var got []int
	for range 4 {
		code, err := s.Next([]float32{2, 2, 3, 3.5, -1})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, code)
	}
	// 3.5 becomes 0.35 from the beginning, 3 becomes 0.3, then both 2 become 0.2: the larger of what is left wins.
	if want := []int{2, 0, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestEqualSeedsChooseEqually(t *testing.T) {
	logits := make([]float32, 100)
	choose := func(seed, sequence uint64) (codes []int) {
		s := New(Settings{Temperature: 1, TopP: 1, RepetitionPenalty: 1.1, Seed: seed, Sequence: sequence}, nil)
		for range 50 {
			code, err := s.Next(logits)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return codes
	}
	if !slices.Equal(choose(1, 2), choose(1, 2)) {
		t.Error("equal seeds chose other codes")
	}
	if slices.Equal(choose(1, 2), choose(2, 2)) || slices.Equal(choose(1, 2), choose(1, 3)) {
		t.Error("other seeds chose the same codes")
	}
}

func TestNotFinite(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := New(Settings{}, nil).Next([]float32{1, float32(x)}); err != ErrNotFinite {
			t.Errorf("%v: error %v", x, err)
		}
	}
}
