// Package fft transforms real frames in float64, and their spectra back:
//
//	plan := fft.New(1024)           // tables, safe to share
//	t := plan.Transform()           // scratch memory, for one goroutine
//	t.Power(spectrum, frame)        // |X[k]|², k = 0..512
//	t.Real(correlation, powers)     // of an even sequence, whose spectrum is real
//	t.Spectrum(spectrum, frame)     // X[k]
//	t.Inverse(frame, spectrum)
//
// gonum transforms any size. The package transforms powers of two itself, about four times as fast.
package fft

import (
	"math"
	"math/bits"
	"unsafe"

	"gonum.org/v1/gonum/dsp/fourier"
)

// Plan creates transforms of one size. It is immutable and safe for concurrent use.
type Plan interface {
	// Transform returns a transform with its own scratch memory, for one goroutine.
	Transform() Transform
}

// Transform computes X[k], the sum of x[i] exp(-2πik/n) over a real frame x of n elements, without scaling. It
// does not change the frame, and allocates nothing after the first Inverse.
type Transform interface {
	// Power writes |X[k]|² for k = 0..n/2 to dst.
	Power(dst, x []float64)
	// Real writes the real part of X[k] for k = 0..n/2 to dst. If x is even, x[i] = x[n-i], the spectrum is real.
	Real(dst, x []float64)
	// Spectrum writes X[k] for k = 0..n/2 to dst.
	Spectrum(dst []complex128, x []float64)
	// Inverse writes to dst the frame that has the spectrum x, of which it does not read the imaginary parts of X[0]
	// and X[n/2].
	Inverse(dst []float64, x []complex128)
}

// New returns a plan for n real numbers; n must be even.
func New(n int) Plan {
	if n >= 8 && n&(n-1) == 0 {
		return newRadix4(n)
	}
	return gonumPlan(n)
}

type gonumPlan int

func (n gonumPlan) Transform() Transform {
	return &gonumTransform{fft: fourier.NewFFT(int(n)), out: make([]complex128, n/2+1)}
}

type gonumTransform struct {
	fft *fourier.FFT
	out []complex128
}

func (g *gonumTransform) Power(dst, x []float64) {
	for k, c := range g.fft.Coefficients(g.out, x) {
		dst[k] = norm2(c)
	}
}

func (g *gonumTransform) Real(dst, x []float64) {
	for k, c := range g.fft.Coefficients(g.out, x) {
		dst[k] = real(c)
	}
}

func (g *gonumTransform) Spectrum(dst []complex128, x []float64) { g.fft.Coefficients(dst, x) }

func (g *gonumTransform) Inverse(dst []float64, x []complex128) {
	g.fft.Sequence(dst, x)
	for i := range dst {
		dst[i] /= float64(len(dst))
	}
}

// Pass is a radix-4 pass of the transform of len(from) complex numbers. Run p of stride butterflies reads a, b, c and d
// from from[p*stride+q] on, each len(from)/4 numbers after the one before, for q = 0..stride-1. It writes four numbers
// to to[4*p*stride+q] and on, each stride numbers after the one before: a+b+c+d, w[0]((a-c)-i(b-d)), w[1]((a+c)-(b+d))
// and w[2]((a-c)+i(b-d)), with w = twiddles[p]. i(b-d) and the sums are computed as written, and the products by four
// real products and two sums: so has an implementation the same bits as this package on amd64. Elsewhere, Go may fuse a
// product and a sum.
type Pass func(to, from []complex128, twiddles [][3]complex128, stride int)

// NewWith returns a plan for a power of two of 8 or more, which computes its passes by a function of the caller.
func NewWith(n int, pass Pass) Plan {
	r := newRadix4(n)
	r.pass = pass
	return r
}

// radix4 transforms n real samples (n a power of two) as m = n/2 complex samples: even samples are the real parts, odd
// samples the imaginary parts, and a last pass separates the two spectra. The complex transform is Stockham's: each
// pass reads one buffer sequentially and writes the other sequentially, so no bit reversal is needed. (C. Van Loan,
// Computational Frameworks for the Fast Fourier Transform, 1992, sections 1.7 and 4.3.)
type radix4 struct {
	m      int
	passes [][][3]complex128 // powers 1 to 3 of the twiddle factors, for each radix-4 pass
	split  []complex128      // exp(-2πik/n), k = 0..m/2
	pass   Pass              // nil for that of this package
}

func newRadix4(n int) *radix4 {
	r := &radix4{m: n / 2}
	for size := r.m; size >= 4; size /= 4 {
		pass := make([][3]complex128, size/4)
		for p := range pass {
			pass[p] = [3]complex128{root(p, size), root(2*p, size), root(3*p, size)}
		}
		r.passes = append(r.passes, pass)
	}
	r.split = make([]complex128, r.m/2+1)
	for k := range r.split {
		r.split[k] = root(k, n)
	}
	return r
}

// root returns exp(-2πik/n).
func root(k, n int) complex128 {
	sin, cos := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
	return complex(cos, sin)
}

func (r *radix4) Transform() Transform {
	return &radix4Transform{plan: r, a: make([]complex128, r.m), b: make([]complex128, r.m)}
}

type radix4Transform struct {
	plan   *radix4
	a, b   []complex128
	joined []float64 // n, of Inverse
}

func (t *radix4Transform) Power(dst, x []float64) { t.plan.powers(dst, t.packed(x)) }

func (t *radix4Transform) Real(dst, x []float64) { t.plan.reals(dst, t.packed(x)) }

func (t *radix4Transform) Spectrum(dst []complex128, x []float64) { t.plan.spectrum(dst, t.packed(x)) }

// Inverse packs the two spectra again, and transforms the conjugate: conj(z) has the spectrum m conj(packed samples).
func (t *radix4Transform) Inverse(dst []float64, x []complex128) {
	if t.joined == nil {
		t.joined = make([]float64, 2*t.plan.m)
	}
	t.plan.join(t.joined, x)
	scale := 0.5 / float64(t.plan.m) // join doubles
	for i, c := range t.packed(t.joined) {
		dst[2*i], dst[2*i+1] = real(c)*scale, -imag(c)*scale
	}
}

// packed returns the spectrum of the packed samples.
func (t *radix4Transform) packed(x []float64) []complex128 {
	from, to, pass := t.a, t.b, t.plan.pass
	if pass == nil {
		pass = middle
		t.first(to, x)
	} else {
		pass(to, unsafe.Slice((*complex128)(unsafe.Pointer(&x[:2*t.plan.m][0])), t.plan.m), t.plan.passes[0], 1)
	}
	from, to = to, from
	stride := 4
	for _, twiddles := range t.plan.passes[1:] {
		pass(to, from, twiddles, stride)
		from, to = to, from
		stride *= 4
	}
	if bits.TrailingZeros(uint(t.plan.m))%2 == 1 {
		last(to, from)
		from = to
	}
	return from
}

// first is the pass of stride 1, which also packs the samples.
func (t *radix4Transform) first(to []complex128, x []float64) {
	pass := t.plan.passes[0]
	n := 2 * len(pass)
	x0, x1, x2, x3 := x[:n], x[n:2*n], x[2*n:3*n], x[3*n:4*n]
	for p := range pass {
		w := &pass[p]
		a, b, c, d := complex(x0[2*p], x0[2*p+1]), complex(x1[2*p], x1[2*p+1]), complex(x2[2*p], x2[2*p+1]),
			complex(x3[2*p], x3[2*p+1])
		out := to[4*p : 4*p+4 : 4*p+4]
		sum, diff, sum2, diff2 := a+c, a-c, b+d, times90(b-d)
		out[0] = sum + sum2
		out[1] = w[0] * (diff - diff2)
		out[2] = w[1] * (sum - sum2)
		out[3] = w[2] * (diff + diff2)
	}
}

// middle is a radix-4 pass of a stride above 1. All butterflies of a run have the same twiddle factors.
func middle(to, from []complex128, pass [][3]complex128, stride int) {
	n := len(pass) * stride
	for p := range pass {
		w1, w2, w3 := pass[p][0], pass[p][1], pass[p][2]
		in, out := from[p*stride:], to[4*p*stride:]
		a, b, c, d := in[:stride], in[n:][:stride], in[2*n:][:stride], in[3*n:][:stride]
		o0, o1, o2, o3 := out[:stride], out[stride:][:stride], out[2*stride:][:stride], out[3*stride:][:stride]
		for q := range a {
			sum, diff, sum2, diff2 := a[q]+c[q], a[q]-c[q], b[q]+d[q], times90(b[q]-d[q])
			o0[q] = sum + sum2
			o1[q] = w1 * (diff - diff2)
			o2[q] = w2 * (sum - sum2)
			o3[q] = w3 * (diff + diff2)
		}
	}
}

// last is the final radix-2 pass, if the size is not a power of four.
func last(to, from []complex128) {
	half := len(from) / 2
	a, b := from[:half], from[half:][:half]
	o0, o1 := to[:half], to[half:][:half]
	for q := range a {
		o0[q], o1[q] = a[q]+b[q], a[q]-b[q]
	}
}

// powers computes the power spectrum of the real samples from z, the spectrum of the packed samples. With E and O the
// spectra of the even and the odd samples, z[k] = E[k] + iO[k], X[k] = E[k] + w[k]O[k], and X[m-k] = conj(E[k] -
// w[k]O[k]).
func (r *radix4) powers(dst []float64, z []complex128) {
	m := r.m
	re, im := real(z[0]), imag(z[0])
	dst[0], dst[m] = (re+im)*(re+im), (re-im)*(re-im)
	for k := 1; k <= m/2; k++ {
		p, q := z[k], conj(z[m-k])
		even, odd := p+q, r.split[k]*minus90(p-q) // both doubled
		dst[k], dst[m-k] = norm2(even+odd)/4, norm2(even-odd)/4
	}
}

// reals computes the real parts of the same spectrum from z.
func (r *radix4) reals(dst []float64, z []complex128) {
	m := r.m
	re, im := real(z[0]), imag(z[0])
	dst[0], dst[m] = re+im, re-im
	for k := 1; k <= m/2; k++ {
		p, q := z[k], conj(z[m-k])
		even, odd := real(p+q), real(r.split[k]*minus90(p-q)) // both doubled
		dst[k], dst[m-k] = (even+odd)/2, (even-odd)/2
	}
}

// spectrum computes the same spectrum from z.
func (r *radix4) spectrum(dst, z []complex128) {
	m := r.m
	re, im := real(z[0]), imag(z[0])
	dst[0], dst[m] = complex(re+im, 0), complex(re-im, 0)
	for k := 1; k <= m/2; k++ {
		p, q := z[k], conj(z[m-k])
		even, odd := p+q, r.split[k]*minus90(p-q) // both doubled
		dst[k], dst[m-k] = half(even+odd), conj(half(even-odd))
	}
}

// join writes the conjugate of z, doubled, real and imaginary parts in turn, for the spectrum x.
func (r *radix4) join(dst []float64, x []complex128) {
	m := r.m
	dst[0], dst[1] = real(x[0])+real(x[m]), real(x[m])-real(x[0])
	for k := 1; k <= m/2; k++ {
		p, q := x[k], conj(x[m-k])
		even, odd := p+q, times90(conj(r.split[k])*(p-q))
		a, b := even+odd, even-odd
		dst[2*k], dst[2*k+1] = real(a), -imag(a)
		dst[2*(m-k)], dst[2*(m-k)+1] = real(b), imag(b)
	}
}

func half(c complex128) complex128    { return complex(real(c)/2, imag(c)/2) }
func norm2(c complex128) float64      { return float64(real(c)*real(c)) + float64(imag(c)*imag(c)) }
func conj(c complex128) complex128    { return complex(real(c), -imag(c)) }
func times90(c complex128) complex128 { return complex(-imag(c), real(c)) }
func minus90(c complex128) complex128 { return complex(imag(c), -real(c)) }
