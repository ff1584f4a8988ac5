package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// bound is the range of a setting.
type bound struct{ min, max float64 }

const (
	many = 1<<31 - 1 // products of two such numbers, and their sums, fit in 64 bits
	huge = 1e30      // a step computes in f32, whose limit is 3.4e38
	rate = manifest.MaxRate
)

// bounds are the ranges that a run can use. They are far wider than useful values, and narrow enough for memory and
// arithmetic.
var bounds = map[string]bound{
	"epochs": {0, many}, "max-steps": {0, many}, "batch-size": {1, 1 << 20}, "accumulate": {1, 1 << 20},
	"lr": {-rate, rate}, "warmup-steps": {0, many}, "weight-decay": {0, rate}, "grad-clip": {0, huge},
	"max-skipped": {1, many}, "eval-every": {0, many}, "checkpoint-every": {0, many}, "checkpoint-minutes": {0, many},
	"disk-wait": {0, 86400}, "keep-last": {0, many}, "keep-media": {0, many},
	"log-every": {0, many}, "min-lr": {0, rate}, "lr-decay": {0, 1},
	"plateau-factor": {0, 1}, "ema": {0, 1}, "plateau-patience": {1, many}, "val-share": {0, 0.5},
	"early-stop": {0, many}, "early-stop-delta": {0, huge}, "num-workers": {0, 1024}, "threads": {0, 1024},
	"spoken-clips": {0, 200},
	"buffer-size":  {1, 1 << 20}, "model-start-delay": {0, 86400}, "plugin-timeout": {0, 86400},
	"plugin-start-timeout": {0, 86400}, "rank-timeout": {2, 86400}, "max-quarantine": {-1, many},
	"trace-steps": {1, many},
}

// shares are the settings that are parts of a whole, which other programs have in percent or as a number of clips.
var shares = map[string]bool{"val-share": true, "lr-decay": true, "plateau-factor": true, "ema": true}

// Check refuses values that no run can use.
func (s *Set) Check() (err error) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		if e := checkValue(f); e != nil && err == nil {
			err = fmt.Errorf("%s: %w", s.place(f), e)
		}
	})
	if err != nil {
		return err
	}
	c := &s.Config
	if c.Resume != "" && c.RunDir != "" {
		return fmt.Errorf("--resume %s continues the run in that folder, so it cannot be combined with --run-dir %s",
			c.Resume, c.RunDir)
	}
	if len(c.Allow) > 0 && c.Resume == "" && c.ResumeOrStart == "" {
		return hint.Errorf("name the run with --resume",
			"%s: only a run that is resumed can differ from its checkpoint", s.place(s.flags.Lookup("allow")))
	}
	if c.Resume != "" && c.Init != "" {
		return fmt.Errorf("--resume %s has its own weights, so it cannot be combined with --init %s", c.Resume, c.Init)
	}
	if c.Epochs == 0 && c.MaxSteps == 0 {
		return fmt.Errorf("%s has no end: give --max-steps as well", s.place(s.flags.Lookup("epochs")))
	}
	if len(c.Freeze) > 0 && len(c.TrainOnly) > 0 {
		freeze, only := s.place(s.flags.Lookup("freeze")), s.place(s.flags.Lookup("train-only"))
		return fmt.Errorf("%s cannot be combined with %s, which freezes everything that it does not name", freeze, only)
	}
	if Asked(s, "val-share") && c.ValShare > 0 && c.ValData != "" {
		return hint.Errorf("leave one of them out: with --val-data, all of the training data is trained on",
			"%s cannot be combined with %s", s.place(s.flags.Lookup("val-share")), s.place(s.flags.Lookup("val-data")))
	}
	if err := s.checkVerify(); err != nil {
		return err
	}
	if c.Attention == BF16Attention {
		attention := s.place(s.flags.Lookup("attention"))
		switch {
		case c.Precision == F32:
			return fmt.Errorf("%s rounds more than %s allows", attention, s.place(s.flags.Lookup("precision")))
		case c.Fuse == Off:
			return fmt.Errorf("%s needs the fused graph, so it cannot be combined with %s", attention,
				s.place(s.flags.Lookup("fuse")))
		}
	}
	if c.Device == CPU {
		for _, name := range gpuFlags {
			if f := s.flags.Lookup(name); f.Value.String() != f.DefValue {
				return fmt.Errorf("%s cannot be combined with %s", s.place(s.flags.Lookup("device")), s.place(f))
			}
		}
	}
	return nil
}

// checkVerify refuses what --verify-plugins cannot be combined with.
func (s *Set) checkVerify() error {
	c := &s.Config
	verify := s.place(s.flags.Lookup("verify-plugins"))
	const advice, cannot = "leave one of them out", "%s cannot be combined with %s, which "
	switch {
	case !c.VerifyPlugins:
	case c.FeatureCache != "":
		return hint.Errorf(advice, cannot+"keeps calls from the plugins", verify,
			s.place(s.flags.Lookup("feature-cache")))
	case c.Debug:
		return hint.Errorf(advice, cannot+"stops plugins between batches", s.place(s.flags.Lookup("debug")), verify)
	case c.Adaptive:
		return hint.Errorf(advice, cannot+"lets only one process work at a time",
			s.place(s.flags.Lookup("adaptive")), verify)
	}
	return nil
}

// gpuFlags have an effect on a GPU only.
var gpuFlags = []string{
	"data-gpu", "model-gpu", "enable-memory-isolation", "data-gpu-memory", "model-gpu-memory", "memory-baseline",
}

func checkValue(f *pflag.Flag) error {
	text := f.Value.String()
	if all, ok := words[f.Name]; ok && !slices.Contains(all, text) {
		allowed := Choices(f.Name)
		advice := hint.DidYouMean(text, allowed)
		if word := meant[strings.ToLower(text)]; slices.Contains(allowed, word) {
			advice = "did you mean " + word + "?"
		}
		last := len(allowed) - 1
		return hint.Errorf(advice, "must be %s or %s", strings.Join(allowed[:last], ", "), allowed[last])
	}
	b, ok := bounds[f.Name]
	if !ok {
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v):
		return notNumber(f, text)
	case v < b.min:
		return fmt.Errorf("the smallest value is %.0f", b.min)
	case v > b.max && shares[f.Name]:
		return hint.Errorf(shareOf(f, text), "the largest value is %s", strconv.FormatFloat(b.max, 'f', -1, 64))
	case v > b.max && b.max == huge:
		return fmt.Errorf("the largest value is %g", b.max)
	case v > b.max:
		return fmt.Errorf("the largest value is %s", strconv.FormatFloat(b.max, 'f', -1, 64))
	}
	return nil
}

// place names a setting and its value as the user wrote it.
func (s *Set) place(f *pflag.Flag) string {
	value := f.Value.String()
	if list, ok := f.Value.(pflag.SliceValue); ok {
		value = strings.Join(list.GetSlice(), ",")
	}
	switch origin := s.origins[f.Name]; origin {
	case fromEnv:
		return envName(f) + "=" + value
	case fromFlag:
		return "--" + f.Name + " " + value
	default:
		return origin + ": " + key(f.Name) + ": " + value
	}
}
