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
func open(t *testing.T, measure bool) (*cublas.Library, *cublas.Handle) {
	t.Helper()
	if os.Getenv("XTTS_HOST_TEST_CUBLAS") == "" {
		t.Skip("XTTS_HOST_TEST_CUBLAS does not say that the loader finds the fake cuBLAS")
	}
	library, err := cublas.Open("libother.so")
	if err != nil {
		t.Fatal(err)
	}
	h, err := library.NewHandle(measure)
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

// TestMeasure: of two algorithms, a product with measuring gets the fastest, once for all products of its form; one without it gets the first.
func TestMeasure(t *testing.T) {
	const slow, fails, even = 5, 6, 4 // results of so many rows, for the fake cuBLASLt
	runtime.LockOSThread()            // which has the context
	defer runtime.UnlockOSThread()
	runs := func(measure bool, rows, products int) (first, second int) {
		library, h := open(t, measure)
		stream := cublastest.NewStream()
		before := [2]int{cublastest.Runs(1), cublastest.Runs(2)}
		p := cublastest.Product{M: rows, N: 1, K: 1, A: make([]float32, rows), B: []float32{1}, C: make([]float32, rows), Stream: stream}
		for range products { // with the same addresses: another alignment would be another form
			if status := cublastest.Run(library, h, p, 1); status != 0 {
				t.Fatalf("%d rows: status %d", rows, status)
			}
		}
		return cublastest.Runs(1) - before[0], cublastest.Runs(2) - before[1]
	}
	const timed = 5 * 3 // runs of an algorithm until it is chosen
	if first, second := runs(false, slow, 2); first != 2 || second != 0 {
		t.Errorf("without measuring: %d and %d runs", first, second)
	}
	if first, second := runs(true, slow, 2); first != timed || second != timed+2 {
		t.Errorf("the first one is slow: %d and %d runs", first, second)
	}
	if first, second := runs(true, fails, 2); first != timed+2 || second != 0 {
		t.Errorf("the second one fails: %d and %d runs", first, second)
	}
	if first, second := runs(true, even, 3); first+second != 2*timed+3 {
		t.Errorf("both are as fast: %d and %d runs", first, second)
	}
}

// TestLinear: the fake cuBLASLt gets the matrices, the bias and the epilogue of each product. scripts/test-cuda.sh runs it.
func TestLinear(t *testing.T) {
	library, h := open(t, false)
	const m, n, k = 2, 3, 4
	a, b, bias := []float32{1, -2, 3, 4, -5, 6, 7, 8}, []float32{.1, .2, -.3, .4, .5, .6, -.7, .8, .9, 1, 1.1, -1.2}, []float32{-1, 2}
	at := func(x []float32, i, j, rows, columns int, transposed bool) float64 {
		if transposed {
			return float64(x[i*columns+j])
		}
		return float64(x[j*rows+i])
	}
	for _, transposed := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
		for _, form := range []struct{ bias, gelu, sum bool }{{}, {true, false, false}, {true, true, false}, {true, true, true}} {
			t.Run(fmt.Sprint(transposed, form), func(t *testing.T) {
				p := cublastest.Product{Transposed: transposed, M: m, N: n, K: k, A: a, B: b, Gelu: form.gelu, C: make([]float32, m*n)}
				if form.bias {
					p.Bias = bias
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
	refused := cublastest.Product{M: 7, N: 1, K: 1, A: make([]float32, 7), B: bias, Bias: make([]float32, 7), C: make([]float32, 7)}
	if status := cublastest.Run(library, h, refused, 1); status != 15 {
		t.Errorf("a product without an algorithm: status %d", status)
	}
}
