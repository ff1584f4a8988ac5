package train

import (
	"errors"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// alike lets the ranks find out, before they do something together on their GPUs, whether all of them have the same
// small number. All ranks ask at the same point of their work, and all get the same answer.
func alike(m *memory, ranks Ranks, number int) (bool, error) {
	w := m.words(3)
	sum, squares := newWord[float32](m, w, manifest.F32), newWord[float32](m, w, manifest.F32)
	size := newWord[float32](m, w, manifest.F32)
	if m.err != nil {
		return false, m.err
	}
	*sum.value, *squares.value, *size.value = float32(number), float32(number*number), 1
	err := errors.Join(
		m.send(w), ranks.Sum(m.device.Compute, []Part{w.one(sum), w.one(squares), w.one(size)}),
		m.receive(w), m.device.Compute.Synchronize(),
	)
	// By the inequality of Cauchy and Schwarz they are equal for equal numbers, and for no others.
	return err == nil && *size.value**squares.value == *sum.value**sum.value, err
}
