package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// ErrCaptured reports that arenas cannot shrink because captured CUDA graphs contain addresses in them.
var ErrCaptured = errors.New("captured CUDA graphs hold the memory")

// ArenaBytes returns the GPU memory that ONNX Runtime's arenas hold now for intermediate values; 0 on the CPU.
func (m *memory) ArenaBytes() (int, error) {
	total := 0
	if m.values != nil {
		var err error
		if total, err = m.values.Bytes(); err != nil {
			return 0, err
		}
	}
	for _, s := range m.sessions {
		n, err := s.ArenaBytes()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// Shrink makes the arena of each session release unused memory after its next run; the run after that allocates what it
// needs. Results do not change. With captured graphs Shrink does nothing and returns ErrCaptured.
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
		// Sessions that could have captured graphs, but did not, also need the option.
		if err := errors.Join(o.ShrinkArenas(m.device.place()), o.NoGraph()); err != nil {
			return fmt.Errorf("shrink arenas: %w", err)
		}
		m.shrink = o
	}
	m.unshrunk = slices.Clone(m.sessions)
	return nil
}
