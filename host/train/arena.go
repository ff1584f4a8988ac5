package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// ErrCaptured says that arenas cannot shrink because CUDA graphs hold addresses in them.
var ErrCaptured = errors.New("captured CUDA graphs hold the memory")

// ArenaBytes returns the memory of the GPU that ONNX Runtime's arenas hold now for intermediate values; 0 on the CPU.
func (m *memory) ArenaBytes() (int, error) {
	total := 0
	for _, s := range m.sessions {
		n, err := s.ArenaBytes()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// Shrink has the arena of each session give back what it does not need, after its next run; the run after that takes what it needs
// again. Numbers do not change. With captured graphs it does nothing and returns ErrCaptured.
func (m *memory) Shrink() error {
	if m.captured {
		return ErrCaptured
	}
	if m.shrink == nil {
		o, err := ort.NewRunOptions()
		if err != nil {
			return err
		}
		m.add(o.Close)
		// Sessions that could capture graphs, and did not, need the option, too.
		if err := errors.Join(o.ShrinkArenas(m.device.place()), o.NoGraph()); err != nil {
			return fmt.Errorf("shrink arenas: %w", err)
		}
		m.shrink = o
	}
	m.unshrunk = slices.Clone(m.sessions)
	return nil
}
