package specaugment

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/augmenttest"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

// TestWarpGolden compares warps with numpy's interpolation: within 1e-6.
func TestWarpGolden(t *testing.T) {
	var golden map[string][]float64
	effecttest.Golden(t, "specaugment", &golden)
	for name, w := range map[string]warp{"later": {5, 8}, "earlier": {7, 2}} {
		mel := effecttest.Noise(24)
		w.apply(mel, 2)
		effecttest.Close(t, name, mel, golden[name], 1e-6)
	}
	mel := effecttest.Noise(24)
	warp{}.apply(mel, 2)
	warp{4, 4}.apply(mel, 2)
	if !effecttest.SameBits(mel, effecttest.Noise(24)) {
		t.Error("a warp by no frames changed the row")
	}
}

// TestDrawWarp: a frame that is far enough from the ends moves by up to the width to both sides, and stays inside. Rows
// that are too short have no warp.
func TestDrawWarp(t *testing.T) {
	moves, froms := map[int]int{}, map[int]int{}
	for n := range 4000 {
		w := drawWarp(generator(n), 5, 30)
		moves[w.to-w.from]++
		froms[w.from]++
		if w.from < 5 || w.from > 24 || w.to < 1 || w.to > 28 {
			t.Fatalf("%+v", w)
		}
	}
	if len(moves) != 11 || len(froms) != 20 || moves[0] < 250 || moves[5] < 250 || moves[-5] < 200 {
		t.Errorf("moves %v, frames %v", moves, froms)
	}
	for frames := range 40 {
		for n := range 20 {
			w := drawWarp(generator(n), 80, frames)
			if frames < 4 && w != (warp{}) || frames >= 4 && (w.to < 1 || w.to > frames-2) {
				t.Errorf("%d frames: %+v", frames, w)
			}
		}
	}
}

// TestWarpAlone: the warp changes no mask, and the masks change no warp.
func TestWarpAlone(t *testing.T) {
	warped := defaults()
	warped.TimeWarp = 20
	without := warped
	without.FreqMasks, without.TimeMasks = 0, 0
	for n := range 50 {
		d, masks, only := warped.draw(100, bands, generator(n)), defaults().draw(100, bands, generator(n)),
			without.draw(100, bands, generator(n))
		if !slices.Equal(d.freqMasks, masks.freqMasks) || !slices.Equal(d.timeMasks, masks.timeMasks) ||
			d.warp != only.warp {
			t.Errorf("row %d: %+v, without a warp %+v, without masks %+v", n, d, masks, only)
		}
	}
}

// TestWarpOfTheStage: the stage warps a row before it masks it, over its frames only.
func TestWarpOfTheStage(t *testing.T) {
	r, err := runner(t, `{"freq_masks": 0, "time_masks": 0, "time_warp": 30}`)
	if err != nil {
		t.Fatal(err)
	}
	in := row(3, 100)
	in.Data = effecttest.Noise(len(in.Data))
	out, err := r.Process(t, []augmenttest.Row{in})
	if err != nil {
		t.Fatal(err)
	}
	c := config{Probability: 1, TimeWarp: 30}
	want := effecttest.Noise(len(in.Data))
	c.draw(100, bands, generator(3)).warp.apply(want, bands)
	if !effecttest.SameBits(out[0][:len(want)], want) || effecttest.SameBits(want, in.Data) {
		t.Error("the row is not warped over its frames")
	}
	if r.Draws[0] == "" {
		t.Error("no report")
	}
}
