package inference

import (
	"runtime"
	"sync"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// adapted are weights with the adapters of a bundle, if it has any, in them: the inference graphs take plain weights.
type adapted struct {
	Weights
	adapters map[string]manifest.Adapter // by the name of the weight
}

// withAdapters returns the weights as the graphs take them.
func withAdapters(w Weights, b *ortgraphs.Bundle) adapted {
	out := adapted{Weights: w, adapters: map[string]manifest.Adapter{}}
	for _, a := range b.Manifest.Adapters {
		out.adapters[a.Weight] = a
	}
	return out
}

// merged reports whether the weight of that name has an adapter in it.
func (w adapted) merged(name string) bool {
	_, ok := w.adapters[name]
	return ok
}

// Read reads a tensor, with its adapter if it has one.
func (w adapted) Read(name string, dst []byte) error {
	if err := w.Weights.Read(name, dst); err != nil {
		return err
	}
	adapter, ok := w.adapters[name]
	if !ok {
		return nil
	}
	a, err := w.matrix(adapter.A)
	if err != nil {
		return err
	}
	b, err := w.matrix(adapter.B)
	if err != nil {
		return err
	}
	left, right := b, a
	if adapter.Transposed() {
		left, right = a.transposed(), b.transposed()
	}
	add(ort.View[float32](dst), left, right, float32(adapter.Scale))
	return nil
}

// matrix is one of the two of an adapter.
type matrix struct {
	values        []float32
	rows, columns int
}

func (w adapted) matrix(name string) (matrix, error) {
	info, ok := w.Tensor(name)
	if !ok {
		return matrix{}, missing(name)
	}
	m := matrix{values: make([]float32, info.Bytes/4), rows: info.Shape[0], columns: info.Shape[1]}
	return m, w.Weights.Read(name, bytesOf(m.values))
}

func (m matrix) transposed() matrix {
	out := matrix{values: make([]float32, len(m.values)), rows: m.columns, columns: m.rows}
	for i, x := range m.values {
		out.values[i%m.columns*m.rows+i/m.columns] = x
	}
	return out
}

// add adds scale * left right to a weight, of which each processor has some rows.
func add(weight []float32, left, right matrix, scale float32) {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() {
			sum := make([]float32, right.columns)
			for row := worker; row < left.rows; row += workers {
				clear(sum)
				for k, x := range left.values[row*left.columns:][:left.columns] {
					for column, y := range right.values[k*right.columns:][:right.columns] {
						sum[column] += x * y
					}
				}
				for column, y := range sum {
					weight[row*right.columns+column] += scale * y
				}
			}
		})
	}
	group.Wait()
}
