package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// dynamic is a bundle that takes texts of up to 50 tokens and clips of up to 40 hops of 10 samples.
func dynamic() *manifest.Bundle {
	return &manifest.Bundle{
		Buckets:  []manifest.Bucket{{"T_text": 20, "T_wav": 100, "T_mel": 11, "T_ref": 70}},
		Dynamic:  manifest.Bucket{"T_text": 50, "T_wav": 400},
		Features: manifest.Features{SampleRate: 100, HopLength: 10, Center: true},
	}
}

// ofHops returns rows of whole hops, with one token for each.
func ofHops(hops ...int) []Row {
	rows := make([]Row, len(hops))
	for i, n := range hops {
		rows[i] = Row{ID: fmt.Sprint(i), Samples: 10 * n, Tokens: n}
	}
	return rows
}

func wav(buckets []manifest.Bucket) (samples []int) {
	for _, b := range buckets {
		samples = append(samples, b["T_wav"])
	}
	return samples
}

func TestBuckets(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rows  []Row
		cfg   BucketConfig
		texts []int
		want  []int
	}{
		{"one length", ofHops(5, 5, 5), BucketConfig{}, []int{5}, []int{50}},
		{"no padding", ofHops(5, 8, 5, 13, 8), BucketConfig{}, []int{5, 8, 13}, []int{50, 80, 130}},
		{"two of three", ofHops(5, 8, 5, 30, 8), BucketConfig{Count: 2}, []int{8, 30}, []int{80, 300}},
		{
			"two of three in any batch", ofHops(5, 8, 5, 30, 8), BucketConfig{Count: 2, BatchSize: 5}, []int{8, 30},
			[]int{80, 300},
		},
		{"not more than help", ofHops(5, 5, 9), BucketConfig{Count: 8}, []int{5, 9}, []int{50, 90}},
		{"one batch holds all", ofHops(5, 6, 7, 8), BucketConfig{BatchSize: 4}, []int{8}, []int{80}},
		{"too long is ignored", ofHops(5, 41, 51), BucketConfig{}, []int{5}, []int{50}},
		{"growth", ofHops(5, 5, 35), BucketConfig{MaxGrowth: 1.5}, []int{5}, []int{75}},
		{"given", ofHops(5, 8, 30), BucketConfig{Samples: []int{100, 200, 400}}, []int{8, 8, 30}, []int{100, 200, 400}},
		{
			"as many frames", []Row{{Samples: 51}, {Samples: 58}, {Samples: 60}}, BucketConfig{Count: 2}, []int{1, 1},
			[]int{58, 60},
		},
		{"nothing", ofHops(41), BucketConfig{}, nil, nil},
	} {
		tt.cfg.Bundle, tt.cfg.BatchSize = dynamic(), max(1, tt.cfg.BatchSize)
		got := Buckets(tt.rows, tt.cfg)
		if !slices.Equal(wav(got), tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			continue
		}
		for i, b := range got {
			want := manifest.Bucket{"T_text": tt.texts[i], "T_wav": tt.want[i], "T_mel": 1 + tt.want[i]/10, "T_ref": 70}
			if fmt.Sprint(b) != fmt.Sprint(want) {
				t.Errorf("%s: bucket %d is %v, want %v", tt.name, i, b, want)
			}
		}
	}
}

// TestBucketsAreOptimal compares with every choice of three lengths, with batches of one row and with empty rows.
func TestBucketsAreOptimal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		hops := make([]int, 25)
		for i := range hops {
			hops[i] = 1 + random.IntN(12)
		}
		l := newHistogram(ofHops(hops...), BucketConfig{Bundle: dynamic()})
		batch := 1 + random.IntN(4)
		work := func(ends ...int) (frames int) {
			begin := 0
			for _, end := range ends {
				if end >= begin {
					frames += l.computed(begin, end+1, batch)
					begin = end + 1
				}
			}
			return frames
		}
		least, last := math.MaxInt, len(l.samples)-1
		for a := range last + 1 {
			for b := range last + 1 {
				least = min(least, work(a, max(a, b), last))
			}
		}
		if ends := l.cut(batch, 3); work(ends...) != least {
			t.Fatalf("%v in batches of %d: %d frames with the ends %v, the least is %d", hops, batch, work(ends...),
				ends, least)
		}
	}
}

// speech returns 500 rows of 0.6 to 11 s, in hops of 10 ms, of lengths that draw returns in seconds.
func speech(draw func(*rand.Rand) float64) []Row {
	random := rand.New(rand.NewPCG(3, 4))
	var hops []int
	for len(hops) < 500 {
		if n := int(100 * draw(random)); n >= 60 && n <= 1100 {
			hops = append(hops, n)
		}
	}
	rows := ofHops(hops...)
	for i := range rows {
		rows[i].Tokens = hops[i] / 4
	}
	return rows
}

// TestBucketsOfSpeech: distributions of lengths have less than 12 % of padding with as many buckets as needed, and
// those without too long a tail also with eight. Every row is in use, and the result is the same again.
func TestBucketsOfSpeech(t *testing.T) {
	b := dynamic()
	b.Dynamic = manifest.Bucket{"T_text": 500, "T_wav": 12000}
	logNormal := func(median, sigma float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return median * math.Exp(sigma*r.NormFloat64()) }
	}
	uniform := func(r *rand.Rand) float64 { return 0.6 + 10.4*r.Float64() }
	for _, c := range []struct {
		name  string
		draw  func(*rand.Rand) float64
		eight bool
	}{
		{"log-normal", logNormal(2.28, 0.5), true},
		{"sum of two exponentials", func(r *rand.Rand) float64 { return 0.6 + r.ExpFloat64() + r.ExpFloat64() }, true},
		{"uniform", uniform, true},
		{"two kinds", func(r *rand.Rand) float64 {
			if r.Float64() < 0.8 {
				return 1.5 + 0.4*r.NormFloat64()
			}
			return 7 + 1.5*r.NormFloat64()
		}, true},
		{"many equal", func(r *rand.Rand) float64 {
			if r.Float64() < 0.8 {
				return 2.5
			}
			return uniform(r)
		}, true},
		{"exponential", func(r *rand.Rand) float64 { return 0.6 + 2*r.ExpFloat64() }, false},
		{"longer tail", logNormal(1.7, 0.9), false},
	} {
		rows := speech(c.draw)
		for _, count := range []int{0, 8} {
			cfg := BucketConfig{Bundle: b, BatchSize: 16, Count: count}
			buckets := Buckets(rows, cfg)
			p, err := NewPlan(rows, PlanConfig{BatchSize: 16, Buckets: buckets})
			if err != nil {
				t.Fatal(err)
			}
			w := p.Work(b.Features)
			t.Logf("%s: %d buckets, padding %.1f %%, empty rows %.1f %%", c.name, len(buckets), 100*w.Padding(),
				100*w.Empty())
			if len(p.Excluded()) > 0 || len(buckets) > MostBuckets || w.Padding() >= 0.12 && (count == 0 || c.eight) {
				t.Errorf("%s: %d left out, padding %.3f in %d buckets", c.name, len(p.Excluded()), w.Padding(),
					len(buckets))
			}
			if again := Buckets(rows, cfg); fmt.Sprint(again) != fmt.Sprint(buckets) {
				t.Errorf("%s: %v, then %v", c.name, buckets, again)
			}
		}
	}
}

func TestExtend(t *testing.T) {
	cfg := BucketConfig{Bundle: dynamic(), BatchSize: 1}
	buckets := Buckets(ofHops(5, 8), cfg)
	if got := Extend(buckets, ofHops(3, 8, 41), cfg); !slices.Equal(wav(got), []int{50, 80}) {
		t.Errorf("rows that fit, or are too long, made %v", got)
	}
	long := ofHops(3, 20, 12)
	long[0].Tokens = 30
	got := Extend(buckets, long, cfg)
	if !slices.Equal(wav(got), []int{50, 80, 200}) || got[2]["T_text"] != 30 || len(buckets) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestWork(t *testing.T) {
	rows := ofHops(5, 8, 5, 30, 8, 41)
	p, err := NewPlan(rows, PlanConfig{BatchSize: 2, Buckets: []manifest.Bucket{{"T_wav": 80}, {"T_wav": 400}}})
	if err != nil {
		t.Fatal(err)
	}
	// Frames are hops + 1: four clips in two batches of 9 frames, one in a batch of two rows of 41.
	w := p.Work(dynamic().Features)
	if want := (Work{Clips: 6 + 9 + 6 + 31 + 9, Rows: 4*9 + 41, Computed: 4*9 + 2*41}); w != want {
		t.Errorf("%+v, want %+v", w, want)
	}
	p, err = NewPlan(rows, PlanConfig{BatchSize: 2, Buckets: []manifest.Bucket{{"T_codes": 80}}})
	if err != nil || p.Work(dynamic().Features) != (Work{}) {
		t.Errorf("%+v, %v", p.Work(dynamic().Features), err)
	}
}
