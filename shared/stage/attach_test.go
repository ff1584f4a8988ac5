package stage

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// pinning is a stage that keeps a reference to the memory of its batches.
type pinning struct {
	scale
	refuse error
	memory []byte
	closed int
}

func (p *pinning) Attach(memory []byte) error {
	p.memory = memory
	return p.refuse
}

func (p *pinning) Close() error {
	p.memory[0] = 1 // still mapped
	p.closed++
	return nil
}

func TestAttacher(t *testing.T) {
	for _, refuse := range []error{nil, errors.New("no room to pin it")} {
		r, err := ring.Create(3, testLayout.Size)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		p := &pinning{refuse: refuse}
		s, err := NewServer(
			Plugin{ID: "test", Version: "1", Stages: map[string]func() Stage{"scale": func() Stage { return p }}},
			r.File(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Configure(t.Context(), configureRequest("")); err != nil {
			t.Fatal(err)
		}
		_, err = s.Attach(t.Context(), &stagepb.AttachRequest{Slots: 3, SlotSize: uint64(r.SlotSize())})
		if refuse != nil {
			if err == nil || !strings.Contains(err.Error(), refuse.Error()) {
				t.Errorf("attach: %v, want %v", err, refuse)
			}
			continue
		}
		if err != nil || len(p.memory) != len(r.Bytes()) || unsafe.SliceData(p.memory) == unsafe.SliceData(r.Bytes()) {
			t.Errorf("attach: %v, %d bytes of %d, which are to be the process's own mapping", err, len(p.memory),
				len(r.Bytes()))
		}
		for range 2 {
			if err := s.Close(); err != nil || p.closed != 1 {
				t.Errorf("close: %v; the stage was closed %d times", err, p.closed)
			}
		}
	}
}
