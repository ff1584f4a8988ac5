package cudnn_test

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/cudnn/cudnntest"
)

// What cuDNN notes of the numbers of an engine.
const (
	tensorCore = iota
	downConvert
	reducedPrecision
	fft
	nondeterministic
	winograd
	strictNaN = 9
)

// TestEngines: a convolution gets an engine that gives the same bits in every run, in f32 one that computes in f32, or
// in TF32 if the program has that, and none if there is none. It gets no more memory than there is, also if another
// convolution of its form had more.
func TestEngines(t *testing.T) {
	of := func(notes ...int) cudnntest.Engine { return cudnntest.Engine{Notes: notes, Workspace: 8} }
	fallback := cudnntest.Engine{Fallback: true, Workspace: 8}
	rounding := []cudnntest.Engine{
		of(tensorCore, downConvert), of(downConvert), of(tensorCore, reducedPrecision), of(fft), of(winograd),
		of(winograd, winograd+1), of(winograd + 2), of(winograd + 3), of(tensorCore, nondeterministic),
	}
	const last = 9 // the first engine after these
	many := slices.Repeat([]cudnntest.Engine{of(tensorCore)}, 40)
	large := cudnntest.Engine{Workspace: 100}
	f32 := cudnntest.Choice{Type: cudnntest.F32}
	tf32, bf16 := cudnntest.Choice{Type: cudnntest.F32, TF32: true}, cudnntest.Choice{Type: cudnntest.BF16}
	for _, c := range []struct {
		what    string
		choice  cudnntest.Choice
		engines []cudnntest.Engine
		sizes   []int
		want    []int
	}{
		{"f32", f32, append(slices.Clip(rounding), of(tensorCore), of(strictNaN)), []int{8}, []int{last + 1}},
		{"TF32", tf32, append(slices.Clip(rounding), of(tensorCore), of(strictNaN)), []int{8}, []int{last}},
		{"f32 after many of TF32", f32, append(slices.Clip(many), of()), []int{8}, []int{len(many)}},
		{"a fallback", f32, append(slices.Clip(rounding), of(tensorCore), fallback), []int{8}, []int{last + 1}},
		{"none", f32, append(slices.Clip(rounding), of(tensorCore)), []int{8}, []int{-1}},
		{"none in TF32", tf32, rounding, []int{8}, []int{-1}},
		{"bf16", bf16, []cudnntest.Engine{of(nondeterministic), of(tensorCore, winograd)}, []int{8}, []int{1}},
		{"memory", f32, []cudnntest.Engine{large, of()}, []int{8, 100}, []int{1, 1}},
		{"no memory", f32, []cudnntest.Engine{large}, []int{8, 100, 8}, []int{-1, 0, -1}},
		{"the fastest", cudnntest.Choice{Type: cudnntest.F32, Measured: true}, []cudnntest.Engine{
			{Notes: []int{tensorCore}, MS: 1}, {MS: 3}, {MS: 2},
		}, []int{8}, []int{2}},
	} {
		ran, left := cudnntest.Run(c.engines, c.choice, c.sizes...)
		if !slices.Equal(ran, c.want) || left != 0 {
			t.Errorf("%s: the engines %v have run, want %v; %d descriptors are left", c.what, ran, c.want, left)
		}
	}
}
