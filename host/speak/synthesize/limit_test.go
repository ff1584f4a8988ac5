package synthesize

import (
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset"
)

// TestWithin: a text with a limit is cut at it, over all its parts, and one that the model ends before it is not. A
// rehearsal is as long as the longest limit.
func TestWithin(t *testing.T) {
	_, s, _ := speaking(t)
	voice, err := s.Listen(t.Context(), []string{clip(t, 0.5, 22050, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Close()
	path := filepath.Join(t.TempDir(), "a.wav")
	say := func(text Text) (seconds float64, ended bool) {
		t.Helper()
		ended, err := s.WriteFile(t.Context(), files.At(path), voice, text, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		row, err := dataset.OpenClip(path, s.Rate())
		if err != nil {
			t.Fatal(err)
		}
		return float64(row.Samples) / float64(s.Rate()), ended
	}
	text := Text{parts: [][]int32{{0}, {0}}}
	whole, ended := say(text)
	if !ended || whole == 0 {
		t.Fatalf("%g s, ended %v", whole, ended)
	}
	if got, ended := say(text.Within(2 * whole)); got != whole || !ended {
		t.Errorf("within twice the length: %g s of %g, ended %v", got, whole, ended)
	}
	code := 4.0 / 24000
	for _, limit := range []float64{0.7 * whole, 0.3 * whole} {
		if got, ended := say(text.Within(limit)); got > limit+2*code || got < limit-4*code || ended {
			t.Errorf("within %g s: %g s, ended %v", limit, got, ended)
		}
	}
	r := &rehearsals{kind: s.kind}
	s.kind = r
	if err := s.Rehearse(t.Context(), voice, text.Within(10.2*code), text.Within(2*code)); err != nil ||
		r.spoken != (Spoken{Length: 10, Cut: true}) {
		t.Errorf("a rehearsal within 10 codes: %+v, %v", r.spoken, err)
	}
	_, f := speakingFrames(t, 12)
	second := f.kind.units(1)
	if want := float64(f.mel.Features().SampleRate) / float64(f.mel.Features().HopLength); math.Abs(
		float64(second)-want/float64(f.step.Spec.Outputs[0].Shape[1].Size)) > 1 || f.kind.units(0) != 1 {
		t.Errorf("%d runs of frames have a second", second)
	}
}
