package profile

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

// measure has real runs measured, by scripts/profile.sh.
var measure = flag.Bool("measure", false, "measure runs that are slow on purpose")

func TestMain(m *testing.M) {
	if flag.Parse(); !*measure {
		os.Exit(m.Run())
	}
	os.Exit(orttest.Run(m))
}

// rig has what real runs need.
type rig struct {
	plugins, folder string
}

func newRig(t *testing.T) *rig {
	if !*measure {
		t.Skip("scripts/profile.sh measures it")
	}
	b := &rig{plugins: t.TempDir(), folder: t.TempDir()}
	if err := catalogtest.BuildFirstParty(b.plugins, "../../../plugins"); err != nil {
		t.Fatal(err)
	}
	if err := catalogtest.Build(filepath.Join(b.plugins, "pass", "pass"), "../../run/testdata/pass"); err != nil {
		t.Fatal(err)
	}
	return b
}

// profiler returns a profiler of runs whose decoding, stage "noise", transfers and training sleep so many ms.
func (b *rig) profiler(t *testing.T, seed, decode, noise, transfer, train int) *profiler {
	t.Helper()
	file := filepath.Join(b.folder, "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `pipeline:
  - {name: target, stage: logmel,
     inputs: {waveform: waveform, waveform_lengths: waveform_lengths},
     outputs: {mel_spectrograms: mel_spectrograms, mel_lengths: mel_lengths}}
  - {name: noise, stage: pass, config: {sleep_ms: %d}, inputs: {x: mel_spectrograms}, outputs: {x: mel_spectrograms}}
  - {name: reference, stage: logmel,
     inputs: {waveform: reference_waveform, waveform_lengths: reference_lengths},
     outputs: {mel_spectrograms: reference_mel_spectrograms, mel_lengths: reference_mel_lengths}}
`, noise), 0o666); err != nil {
		t.Fatal(err)
	}
	set := config.New()
	if err := set.Parse([]string{
		"--plugins", b.plugins, "--graph", "../../../ortgraphs/testdata/pico", "--batch-size", "4", "--device", "cpu",
		"--seed", fmt.Sprint(seed), "--config", file, "--threads", "1",
	}, nil); err != nil {
		t.Fatal(err)
	}
	bundle, err := ortgraphs.Load(set.Graph)
	if err != nil {
		t.Fatal(err)
	}
	p := &profiler{
		Options: Options{Steps: 50}, given: set, set: set.Copy(), bundle: bundle,
		console: console.Console{Out: io.Discard, Err: io.Discard}, dir: filepath.Join(t.TempDir(), "run"),
		run: run.TrainWith,
	}
	if err := p.prepare(filepath.Join(t.TempDir(), "data")); err != nil {
		t.Fatal(err)
	}
	sleep := func(n int) func() { return func() { time.Sleep(time.Duration(n) * ms) } }
	p.delays = batch.Delays{Decode: sleep(decode), Transfer: sleep(transfer), Train: sleep(train)}
	return p
}

// train is one run with changes.
func train(t *testing.T, p *profiler, changes ...bottleneck.Setting) (*report.Report, time.Duration) {
	t.Helper()
	began := time.Now()
	r, err := p.train(t.Context(), batch.NoCheckpoint, changes)
	if err != nil {
		t.Fatal(err)
	}
	return r, time.Since(began)
}

// TestMeasuredCauses measures runs that are slow on purpose, and what their first advice gives.
func TestMeasuredCauses(t *testing.T) {
	b := newRig(t)
	for _, c := range []struct {
		name                           string
		decode, noise, transfer, train int // ms
		cause                          string
	}{
		{"decode", 600, 60, 0, 120, "decode"}, {"stage", 60, 600, 0, 120, "noise"},
		{"transfer", 60, 60, 300, 120, "transfer"}, {"healthy", 60, 60, 0, 120, bottleneck.Train},
	} {
		for seed := 1; seed <= 3; seed++ {
			t.Run(fmt.Sprintf("%s %d", c.name, seed), func(t *testing.T) {
				p := b.profiler(t, seed, c.decode, c.noise, c.transfer, c.train)
				r, _ := train(t, p)
				f := r.Verdict.Findings[0]
				if f.Cause != c.cause {
					t.Fatalf("%+v", f)
				}
				if c.cause == bottleneck.Train {
					t.Logf("%.2f steps/s, %v, other programs took %.0f %% of the cores", r.StepsPerSecond,
						r.Verdict.Checks, 100*r.Verdict.Others)
					if bottleneck.Major(r.Verdict.Findings) && r.Verdict.Others < bottleneck.BusyLimit {
						t.Errorf("%+v", r.Verdict.Findings)
					}
					return
				}
				mended := c
				var changes []bottleneck.Setting
				if f.Change != nil {
					changes = append(changes, *f.Change)
				} else {
					mended.transfer = 0 // no setting helps
				}
				// Twice, as other programs may use the machine in one half of the time.
				var gains, errors [2]float64
				busy := r.Verdict.Others
				for i := range gains {
					if i > 0 {
						r, _ = train(t, b.profiler(t, seed, c.decode, c.noise, c.transfer, c.train))
					}
					busy = max(busy, r.Verdict.Others)
					better := b.profiler(t, seed, mended.decode, mended.noise, mended.transfer, mended.train)
					after, _ := train(t, better, changes...)
					busy = max(busy, after.Verdict.Others)
					gains[i], errors[i] = after.StepsPerSecond/r.StepsPerSecond-1, spread(after.StepMs.Distribution)
				}
				gain := (gains[0] + gains[1]) / 2
				noise := math.Hypot((gains[0]-gains[1])/2, (1+gain)*math.Hypot(errors[0], errors[1])/2)
				t.Logf("%.2f steps/s, %s: gain %.3f ± %.3f. %s Other programs took up to %.0f %% of the cores",
					r.StepsPerSecond, key(changes), gain, noise, f.Predicted(), 100*busy)
				switch {
				case f.Gain == nil && !f.Uncertain:
					t.Error("nothing is predicted")
				case busy >= bottleneck.BusyLimit: // the model knows one run, and the others had another machine
					t.Log("the machine is busy with other programs, so the prediction is not compared")
				case math.Abs(*f.Gain-gain) > 0.2*gain+noise:
					t.Errorf("the gain is %.3f, predicted %.3f", gain, *f.Gain)
				}
			})
		}
	}
}

// TestMeasuredSearch compares the search with a grid.
func TestMeasuredSearch(t *testing.T) {
	b := newRig(t)
	p := b.profiler(t, 1, 300, 600, 0, 120)
	var best, noise float64
	var at []bottleneck.Setting
	began, runs := time.Now(), 0
	for _, workers := range []string{"1", "2", "4", "8"} {
		for _, processes := range []string{"pass=1", "pass=2", "pass=4", "pass=8"} {
			for _, buffer := range []string{"4", "50"} {
				changes := []bottleneck.Setting{{Name: "num-workers", Value: workers},
					{Name: "plugin-workers", Value: processes}, {Name: "buffer-size", Value: buffer}}
				r, _ := train(t, p, changes...)
				if runs++; r.StepsPerSecond > best {
					best, noise, at = r.StepsPerSecond, spread(r.StepMs.Distribution), changes
				}
			}
		}
	}
	spent := time.Since(began)
	t.Logf("grid: %d runs in %.0f s, the best %.2f steps/s ± %.2f with %s", runs, spent.Seconds(), best, best*noise,
		key(at))
	for seed := 1; seed <= 3; seed++ {
		p := b.profiler(t, seed, 300, 600, 0, 120)
		p.Apply, p.Budget = filepath.Join(t.TempDir(), "fast.yaml"), 2*time.Minute
		began := time.Now()
		r, _ := train(t, p)
		a, err := p.apply(t.Context(), ResultOf(r, 4, true))
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		again, _ := train(t, p, a.Changes...) // the fastest of a few runs is a chance; this one is not chosen
		t.Logf("search %d: %d runs in %.0f s, %.2f steps/s, and again %.2f ± %.2f, with %s", seed, len(a.Trials),
			took.Seconds(), a.fastest().StepsPerSecond, again.StepsPerSecond,
			again.StepsPerSecond*spread(again.StepMs.Distribution), key(a.Changes))
		if again.StepsPerSecond < best*(0.95-2*noise) || took > spent/4 {
			t.Errorf("search %d: %.2f steps/s in %s, the grid has %.2f in %s", seed, again.StepsPerSecond, took, best,
				spent)
		}
	}
}
