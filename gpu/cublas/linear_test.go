package cublas_test

import (
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/cublas"
	"github.com/xtts-host/xtts-host/gpu/cublas/cublastest"
)

// TestLinear: the fake cuBLASLt gets the matrices, the bias and the epilogue of each product. scripts/test-cuda.sh runs it.
func TestLinear(t *testing.T) {
	if os.Getenv("XTTS_HOST_TEST_CUBLAS") == "" {
		t.Skip("XTTS_HOST_TEST_CUBLAS does not say that the loader finds the fake cuBLAS")
	}
	library, err := cublas.Open("libother.so")
	if err != nil {
		t.Fatal(err)
	}
	h, err := library.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const m, n, k = 2, 3, 4
	a, b, bias := []float32{1, -2, 3, 4, -5, 6, 7, 8}, []float32{.1, .2, -.3, .4, .5, .6, -.7, .8, .9, 1, 1.1, -1.2}, []float32{-1, 2}
	at := func(x []float32, i, j, rows, columns int, transposed bool) float64 {
		if transposed {
			return float64(x[i*columns+j])
		}
		return float64(x[j*rows+i])
	}
	for _, transposed := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
		for _, form := range []struct{ gelu, sum bool }{{false, false}, {true, false}, {true, true}} {
			t.Run(fmt.Sprint(transposed, form), func(t *testing.T) {
				p := cublastest.Product{Transposed: transposed, M: m, N: n, K: k, A: a, B: b, Bias: bias, Gelu: form.gelu, C: make([]float32, m*n)}
				if form.sum {
					p.Sum = make([]float32, m*n)
				}
				if status := cublastest.Run(library, h, p, 2); status != 0 {
					t.Fatalf("status %d", status)
				}
				for i := range m {
					for j := range n {
						want := float64(bias[i])
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
