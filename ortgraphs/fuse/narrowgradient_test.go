package fuse_test

import (
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// narrowForms are convolutions of few channels: with distant taps, sizes that strips do not
// divide, channels that are filled up, columns of the kernel that warps do not divide, and more strips than blocks.
var narrowForms = []fuse.ConvolutionForm{
	{Batch: 3, Channels: 32, Results: 32, Size: [2]int{9, 37}, Kernel: [2]int{3, 3}, Before: [2]int{1, 1}},
	{Batch: 3, Channels: 32, Results: 32, Size: [2]int{37, 9}, Kernel: [2]int{3, 3}, After: [2]int{2, 1}},
	{
		Batch: 2, Channels: 16, Results: 24, Size: [2]int{7, 50}, Kernel: [2]int{2, 7}, Dilation: [2]int{1, 3},
		Before: [2]int{2, 9}, After: [2]int{0, 9},
	},
	{Batch: 2, Channels: 16, Results: 8, Size: [2]int{8, 21}, Kernel: [2]int{4, 4}, Before: [2]int{2, 2}},
	{Batch: 1, Channels: 8, Results: 32, Size: [2]int{3, 700}, Kernel: [2]int{2, 9}},
	{Batch: 140, Channels: 8, Results: 8, Size: [2]int{20, 20}, Kernel: [2]int{2, 1}},
	{Batch: 1, Channels: 16, Results: 32, Size: [2]int{12, 40}, Kernel: [2]int{2, 8}, Before: [2]int{0, 4}},
}

// TestNarrowGradients: the program computes the sums of all products.
func TestNarrowGradients(t *testing.T) {
	var k kernels
	k.narrowGradients(t, narrowForms...)
	k.complete(t, len(narrowForms))
	k.check(t, &emulation{}, 8e-3) // a unit in the last place of bf16
}

// TestWideGradients: a library computes those of many channels, or in f32.
func TestWideGradients(t *testing.T) {
	for _, change := range []func(*fuse.ConvolutionForm){
		func(f *fuse.ConvolutionForm) { f.Channels = 40 },
		func(f *fuse.ConvolutionForm) { f.Results = 40 },
		func(f *fuse.ConvolutionForm) { f.Stride[1] = 2 },
		func(f *fuse.ConvolutionForm) { f.Groups = 2 },
		func(f *fuse.ConvolutionForm) { f.Type = f32 },
		func(f *fuse.ConvolutionForm) { f.Pass = fuse.OfInput },
		func(f *fuse.ConvolutionForm) { f.Dilation[0] = 2 },
		func(f *fuse.ConvolutionForm) { f.Dilation[1] = 1000 },
		func(f *fuse.ConvolutionForm) { f.Kernel[0] = 6 },
		func(f *fuse.ConvolutionForm) { f.Kernel[0] = 1 },
		func(f *fuse.ConvolutionForm) { f.Batch, f.Size = 1, [2]int{1, 1} },
	} {
		f := completed(narrowForms[0])
		const least = 10_000
		if _, ok := fuse.NarrowGradientOf(&fuse.Convolution{ConvolutionForm: f}, least); !ok {
			t.Fatal("the form itself is not one of few channels")
		}
		change(&f)
		if g, ok := fuse.NarrowGradientOf(&fuse.Convolution{ConvolutionForm: f}, least); ok {
			t.Errorf("%s: in strips of %v", f.Describe(), g.Strip)
		}
	}
}

// completed is a form of the gradient of weights, with the sizes that a test leaves out.
func completed(f fuse.ConvolutionForm) fuse.ConvolutionForm {
	f.Pass, f.Type, f.Groups, f.Stride = fuse.OfWeights, short, 1, [2]int{1, 1}
	for i := range 2 {
		f.Dilation[i] = max(1, f.Dilation[i])
		f.ResultSize[i] = f.Size[i] + f.Before[i] + f.After[i] - (f.Kernel[i]-1)*f.Dilation[i]
	}
	return f
}

// narrowGradients adds gradients of weights, of random numbers.
func (k *kernels) narrowGradients(t *testing.T, forms ...fuse.ConvolutionForm) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 8))
	for _, f := range forms {
		f = completed(f)
		g, ok := fuse.NarrowGradientOf(&fuse.Convolution{ConvolutionForm: f}, 1)
		if !ok {
			t.Fatalf("%s: not one of few channels", f.Describe())
		}
		x := &fuse.Tensor{Name: "x", Type: short, Shape: []int{f.Batch, f.Size[0], f.Size[1], f.Channels}}
		y := &fuse.Tensor{Name: "y", Type: short, Shape: []int{f.Batch, f.ResultSize[0], f.ResultSize[1], f.Results}}
		w := &fuse.Tensor{
			Name: "w", Type: short, Shape: []int{f.Results, f.Kernel[0], f.Kernel[1], f.Channels},
		}
		g.In = [2]*fuse.Tensor{x, y}
		n := &fuse.Node{Op: "Convolution", Out: []*fuse.Tensor{w}}
		w.From = n
		m := memory{}
		for _, in := range g.In {
			values := make([]float64, in.Elements())
			for i := range values {
				values[i] = random.NormFloat64()
			}
			m[in] = encode(values, short)
		}
		m[w] = encode(gradientOfWeights(f, m[x], m[y]), short)
		k.add(t, []*fuse.Region{{Nodes: []*fuse.Node{n}, In: g.In[:], Out: n.Out, Work: g}}, m)
	}
}

// gradientOfWeights adds up the products one after another.
func gradientOfWeights(f fuse.ConvolutionForm, x, y []number) []float64 {
	taps := f.Kernel[0] * f.Kernel[1]
	w := make([]float64, f.Results*taps*f.Channels)
	for i := range w {
		channel, tap, result := i%f.Channels, i/f.Channels%taps, i/(f.Channels*taps)
		for j := range f.Batch * f.ResultSize[0] * f.ResultSize[1] {
			row := j/f.ResultSize[1]%f.ResultSize[0] + tap/f.Kernel[1]*f.Dilation[0] - f.Before[0]
			column := j%f.ResultSize[1] + tap%f.Kernel[1]*f.Dilation[1] - f.Before[1]
			if row < 0 || column < 0 || row >= f.Size[0] || column >= f.Size[1] {
				continue
			}
			from := (j/(f.ResultSize[0]*f.ResultSize[1])*f.Size[0]+row)*f.Size[1] + column
			w[i] += x[from*f.Channels+channel].f * y[j*f.Results+result].f
		}
	}
	return w
}
