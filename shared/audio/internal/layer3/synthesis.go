package layer3

import "math"

// synthesis is the state of the synthesis of 32 subbands (ISO/IEC 11172-3, section 2.4.3.2.2): the last 16 vectors of
// 64.
type synthesis struct {
	vectors [16][64]float32
	newest  int
}

// window is that of the synthesis.
var window = func() (t [512]float32) {
	for i := range t {
		v := windowHalf[min(i, len(t)-i)]
		if i > len(t)/2 && i%64 != 0 {
			v = -v
		}
		t[i] = float32(v) / (1 << 16)
	}
	return t
}()

// The even and the odd rows of a cosine transform of 32 values, which depend on the sums and the differences of two.
var evenRows, oddRows = func() (even, odd [16][16]float32) {
	cos := func(n, k int) float32 { return float32(math.Cos(math.Pi / 64 * float64((2*n+1)*k))) }
	for k := range 16 {
		for n := range 16 {
			even[k][n], odd[k][n] = cos(n, 2*k), cos(n, 2*k+1)
		}
	}
	return even, odd
}()

// granule writes the samples of the subbands, 18 of each.
func (s *synthesis) granule(dst []float32, bands *[lines]float32) {
	for t := range width {
		s.newest = (s.newest + 15) & 15
		s.transform(&s.vectors[s.newest], bands, t)
		s.output((*[subbands]float32)(dst[t*subbands:]))
	}
}

// transform computes a vector: cos((16+i)(2k+1)pi/64) times the samples k, for i up to 63. All are values of one cosine
// transform.
func (s *synthesis) transform(v *[64]float32, bands *[lines]float32, t int) {
	var sums, differences [16]float32
	for n := range 16 {
		a, b := bands[n*width+t], bands[(31-n)*width+t]
		sums[n], differences[n] = a+b, a-b
	}
	var c [32]float32
	for k := range 16 {
		var even, odd float32
		e, o := &evenRows[k], &oddRows[k]
		for n := range 16 {
			even += e[n] * sums[n]
			odd += o[n] * differences[n]
		}
		c[2*k], c[2*k+1] = even, odd
	}
	v[16] = 0
	for i := range 16 {
		v[i] = c[16+i]
		v[17+i] = -c[31-i]
		v[33+i] = -c[15-i]
	}
	for i := range 15 {
		v[49+i] = -c[1+i]
	}
}

// output writes 32 samples.
func (s *synthesis) output(dst *[subbands]float32) {
	clear(dst[:])
	for i := range 8 {
		a := s.vectors[(s.newest+2*i)&15][:32]
		b := s.vectors[(s.newest+2*i+1)&15][32:]
		wa, wb := window[64*i:][:32], window[64*i+32:][:32]
		for j := range dst {
			dst[j] += a[j]*wa[j] + b[j]*wb[j]
		}
	}
}
