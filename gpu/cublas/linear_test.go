package cublas_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/cublas"
	"github.com/xtts-host/xtts-host/gpu/cublas/cublastest"
)

// open returns the fake cuBLAS and a handle of it.
func open(t *testing.T, measured float64) (*cublas.Library, *cublas.Handle) {
	t.Helper()
	if os.Getenv("XTTS_HOST_TEST_CUBLAS") == "" {
		t.Skip("XTTS_HOST_TEST_CUBLAS does not say that the loader finds the fake cuBLAS")
	}
	library, err := cublas.Open("libother.so")
	if err != nil {
		t.Fatal(err)
	}
	h, err := library.NewHandle(measured)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return library, h
}

// TestMeasure: of two algorithms, a large product gets the fastest that works, once for all products of its form. A
// small product gets the first, and so does one whose stream records it.
func TestMeasure(t *testing.T) {
	const slow, fails, first, even = 5, 6, 8, 4 // results of so many rows, for the fake cuBLASLt
	runtime.LockOSThread()                      // which has the context
	defer runtime.UnlockOSThread()
	runs := func(measured float64, rows, products int) [2]int {
		library, h := open(t, measured)
		stream := cublastest.NewStream()
		before := [2]int{cublastest.Runs(1), cublastest.Runs(2)}
		p := cublastest.Product{
			M: rows, N: 1, K: 1, A: make([]float32, rows), B: []float32{1}, C: make([]float32, rows), Stream: stream,
		}
		for range products { // with the same addresses: another alignment would be another form
			if status := cublastest.Run(library, h, p, 1); status != 0 {
				t.Fatalf("%d rows: status %d", rows, status)
			}
		}
		return [2]int{cublastest.Runs(1) - before[0], cublastest.Runs(2) - before[1]}
	}
	const timed = 5 * 3 // runs of an algorithm until it is chosen
	for name, c := range map[string]struct {
		measured float64
		rows     int
		want     [2]int
	}{
		"none is measured":    {0, slow, [2]int{2, 0}},
		"a small product":     {slow + 1, slow, [2]int{2, 0}},
		"the first is slow":   {slow, slow, [2]int{timed, timed + 2}},
		"the second fails":    {1, fails, [2]int{timed + 2, 0}},
		"the first one fails": {1, first, [2]int{0, timed + 2}},
	} {
		if got := runs(c.measured, c.rows, 2); got != c.want {
			t.Errorf("%s: %d runs, want %d", name, got, c.want)
		}
	}
	if got := runs(1, even, 3); got[0]+got[1] != 2*timed+3 {
		t.Errorf("both are as fast: %d runs", got)
	}
	cublastest.Record(true)
	defer cublastest.Record(false)
	if got, want := runs(1, slow, 2), [2]int{2, 0}; got != want {
		t.Errorf("recorded: %d runs, want %d", got, want)
	}
}

// TestLinear: the fake cuBLASLt gets the matrices, the bias, the residual and the epilogue of each product.
// scripts/test-cuda.sh runs it.
func TestLinear(t *testing.T) {
	library, h := open(t, 0)
	const m, n, k = 2, 3, 4
	a, b, bias := []float32{1, -2, 3, 4, -5, 6, 7, 8}, []float32{.1, .2, -.3, .4, .5, .6, -.7, .8, .9, 1, 1.1, -1.2},
		[]float32{-1, 2}
	residual := []float32{3, 2, 1, -1, -2, -3}
	at := func(x []float32, i, j, rows, columns int, transposed bool) float64 {
		if transposed {
			return float64(x[i*columns+j])
		}
		return float64(x[j*rows+i])
	}
	for _, transposed := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
		for _, form := range []struct{ bias, residual, gelu, sum bool }{
			{}, {bias: true}, {bias: true, gelu: true}, {bias: true, gelu: true, sum: true}, {residual: true},
			{bias: true, residual: true}} {
			t.Run(fmt.Sprint(transposed, form), func(t *testing.T) {
				p := cublastest.Product{
					Transposed: transposed, M: m, N: n, K: k, A: a, B: b, Gelu: form.gelu, C: make([]float32, m*n),
				}
				if form.bias {
					p.Bias = bias
				}
				if form.residual {
					p.Residual = residual
				}
				if form.sum {
					p.Sum = make([]float32, m*n)
				}
				if status := cublastest.Run(library, h, p, 2); status != 0 {
					t.Fatalf("status %d", status)
				}
				for i := range m {
					for j := range n {
						want := 0.0
						if form.bias {
							want = float64(bias[i])
						}
						if form.residual {
							want += float64(residual[j*m+i])
						}
						for l := range k {
							want += at(a, i, l, m, k, transposed[0]) * at(b, l, j, k, n, transposed[1])
						}
						if got := p.Sum; got != nil && math.Abs(float64(got[j*m+i])-want) > 1e-5 {
							t.Errorf("sum %d, %d: %g, want %g", i, j, got[j*m+i], want)
						}
						if form.gelu {
							want *= 0.5 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(want+0.044715*want*want*want)))
						}
						if got := float64(p.C[j*m+i]); math.Abs(got-want) > 1e-5 {
							t.Errorf("%d, %d: %g, want %g", i, j, got, want)
						}
					}
				}
			})
		}
	}
	for name, change := range map[string]func(p *cublastest.Product){
		"GELU with a residual":       func(p *cublastest.Product) { p.Bias, p.Gelu = bias, true },
		"the residual is the result": func(p *cublastest.Product) { p.C = residual }} {
		p := cublastest.Product{M: m, N: n, K: k, A: a, B: b, Residual: residual, C: make([]float32, m*n)}
		change(&p)
		if status := cublastest.Run(library, h, p, 1); status != 7 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	refused := cublastest.Product{
		M: 7, N: 1, K: 1, A: make([]float32, 7), B: bias, Bias: make([]float32, 7), C: make([]float32, 7),
	}
	if status := cublastest.Run(library, h, refused, 1); status != 15 {
		t.Errorf("a product without an algorithm: status %d", status)
	}
}
