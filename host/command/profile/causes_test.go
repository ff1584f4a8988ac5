package profile

import (
	"math"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
)

const ms = time.Millisecond

// TestCauses: runs that are slow on purpose are diagnosed, and what the first finding predicts is what its change, or
// the end of its cause, gives.
func TestCauses(t *testing.T) {
	stages := func(first, second time.Duration) []slow {
		return []slow{{"target", "features", first}, {"noise", "augment", second}}
	}
	for _, c := range []struct {
		name   string
		c      computer
		setup  []bottleneck.Setting
		cause  string
		change string
		mended func(*computer) // what the advice says, if no setting does it
	}{
		{name: "decode", c: computer{decode: 190 * ms, train: 20 * ms, transfer: ms, stages: stages(5*ms, 8*ms)},
			cause: "decode", change: "--num-workers 11"},
		{name: "decode, then a stage", c: computer{decode: 190 * ms, train: 20 * ms, stages: stages(5*ms, 60*ms)},
			cause: "decode", change: "--num-workers 11"},
		{name: "a stage", c: computer{decode: 10 * ms, train: 20 * ms, transfer: ms, stages: stages(5*ms, 120*ms)},
			cause: "noise", change: "--plugin-workers augment=7"},
		{name: "two stages of a plugin", c: computer{decode: 10 * ms, train: 20 * ms, stages: []slow{
			{"target", "features", 30 * ms}, {"reference", "features", 40 * ms},
		}}, cause: "reference", change: "--plugin-workers features=4"},
		{name: "transfer", c: computer{decode: 10 * ms, train: 20 * ms, transfer: 60 * ms, stages: stages(5*ms, 8*ms)},
			cause: "transfer", mended: func(c *computer) { c.transfer = 0 }},
		{name: "a short ring", c: computer{decode: 30 * ms, train: 20 * ms, transfer: ms, stages: stages(15*ms, 15*ms)},
			setup: []bottleneck.Setting{{Name: "buffer-size", Value: "2"}},
			cause: "buffer", change: "--buffer-size 50"},
		{name: "healthy", c: computer{decode: 30 * ms, train: 20 * ms, transfer: ms, stages: stages(15*ms, 15*ms)},
			cause: "train"},
	} {
		for _, seed := range []uint64{1, 2, 3} {
			c.c.seed, c.c.varies = seed, 0.1
			setup := with(usual(&c.c), c.setup...)
			r, _ := c.c.run(t, setup)
			f := r.Verdict.Findings[0]
			change := ""
			if f.Change != nil {
				change = key([]bottleneck.Setting{*f.Change})
			}
			if f.Cause != c.cause || change != c.change || f.Major != (c.cause != "train") {
				t.Errorf("%s: %+v, want %s, %q", c.name, f, c.cause, c.change)
				continue
			}
			if bottleneck.Major(r.Verdict.Findings) != f.Major {
				t.Errorf("%s: %+v", c.name, r.Verdict.Findings)
			}
			if c.cause == "train" {
				continue
			}
			mended := c.c
			if f.Change != nil {
				setup = with(setup, *f.Change)
			} else {
				c.mended(&mended)
			}
			after, _ := mended.run(t, setup)
			gain := after.StepsPerSecond/r.StepsPerSecond - 1
			t.Logf("%s, seed %d: %.1f steps/s, gain %.3f, predicted %.3f", c.name, seed, r.StepsPerSecond, gain,
				*f.Gain)
			if d := *f.Gain/gain - 1; d < -0.2 || d > 0.2 {
				t.Errorf("%s, seed %d: the gain is %.3f, predicted %.3f", c.name, seed, gain, *f.Gain)
			}
		}
	}
}

// TestUneven: if each part is fast enough in the mean, more slots or a longer ring help, and gain at most what is
// predicted.
func TestUneven(t *testing.T) {
	for i, seed := range []uint64{1, 2, 3, 1, 2, 3} {
		c := computer{transfer: 10 * ms, train: 12 * ms, varies: 1, seed: seed}
		setup := with(usual(&c), bottleneck.Setting{Name: "slots", Value: "2"})
		cause, change := "slots", "--slots 4"
		if i >= 3 {
			c = computer{decode: 65 * ms, train: 20 * ms, varies: 1, seed: seed}
			setup = with(usual(&c), bottleneck.Setting{Name: "buffer-size", Value: "4"},
				bottleneck.Setting{Name: "num-workers", Value: "4"})
			cause, change = "buffer", "--buffer-size 50"
		}
		r, _ := c.run(t, setup)
		f := r.Verdict.Findings[0]
		if f.Cause != cause || f.Change == nil || key([]bottleneck.Setting{*f.Change}) != change || !f.AtMost {
			t.Fatalf("seed %d: %+v %+v", seed, f, r.Verdict.Parts)
		}
		after, _ := c.run(t, with(setup, *f.Change))
		gain := after.StepsPerSecond/r.StepsPerSecond - 1
		noise := math.Hypot(spread(r.StepMs.Distribution), spread(after.StepMs.Distribution)) * (1 + gain)
		t.Logf("seed %d: gain %.3f ± %.3f, predicted at most %.3f", seed, gain, noise, *f.Gain)
		if gain <= 0 || gain > *f.Gain+noise {
			t.Errorf("seed %d: the gain is %.3f, predicted at most %.3f", seed, gain, *f.Gain)
		}
	}
}
