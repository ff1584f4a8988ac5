package ort

import (
	"errors"
	"strings"
	"testing"
)

// On the CPU an arena works as on a GPU, apart from streams.

// product opens a session whose runs have one intermediate value, of n numbers.
func product(t *testing.T, a *Arena, n int) (*Session, *Binding) {
	t.Helper()
	return productOf(t, a, zeros(t, []int{n}), zeros(t, []int{n}))
}

func productOf(t *testing.T, a *Arena, w, grad *Tensor) (*Session, *Binding) {
	t.Helper()
	s, err := NewSession(SessionConfig{Path: "testdata/sgd.onnx", Threads: 1, Arena: a})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	b.BindInput("w", w)
	b.BindInput("grad.w", grad)
	b.BindInput("lr", zeros(t, nil))
	b.BindOutput("updated", w)
	return s, b
}

func arena(t *testing.T, limit int) *Arena {
	t.Helper()
	a, err := NewArena(Host, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func arenaBytes(t *testing.T, a *Arena) int {
	t.Helper()
	n, err := a.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSessionsShareAnArena: two sessions take the memory of one, and what is left when they are closed serves others.
func TestSessionsShareAnArena(t *testing.T) {
	const n = 1 << 20
	a := arena(t, 0)
	if size := arenaBytes(t, a); size != 0 {
		t.Errorf("%d bytes without a session", size)
	}
	first, b := product(t, a, n)
	second, c := product(t, a, n)
	for _, run := range []*Binding{b, c, b} {
		if err := run.Run(nil); err != nil {
			t.Fatal(err)
		}
		if size := arenaBytes(t, a); size != 4*n {
			t.Errorf("%d bytes, want the %d of one product", size, 4*n)
		}
	}
	for _, s := range []*Session{first, second} {
		if size, err := s.ArenaBytes(); size != 0 || err != nil {
			t.Errorf("a session has %d bytes of its own (%v)", size, err)
		}
		if err := a.Close(); err == nil || !strings.Contains(err.Error(), "sessions use it") {
			t.Errorf("closed under its sessions: %v", err)
		}
		s.Close()
	}
	if size := arenaBytes(t, a); size != 4*n {
		t.Errorf("%d bytes without sessions, want %d", size, 4*n)
	}
	_, third := product(t, a, n/2)
	if err := third.Run(nil); err != nil {
		t.Fatal(err)
	}
	if size := arenaBytes(t, a); size != 4*n {
		t.Errorf("%d bytes after a run with less, want %d", size, 4*n)
	}
	shrink, err := NewRunOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer shrink.Close()
	if err := errors.Join(shrink.ShrinkArenas(Host), third.Run(shrink)); err != nil {
		t.Fatal(err)
	}
	if size := arenaBytes(t, a); size != 0 {
		t.Errorf("%d bytes after a run that shrinks", size)
	}
}

func TestArenaLimit(t *testing.T) {
	const n = 1 << 20
	a := arena(t, 6*n)
	_, large := product(t, a, 2*n)
	_, small := product(t, a, n)
	for range 2 {
		if err := large.Run(nil); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("a run that needs more: %v", err)
		}
		if err := small.Run(nil); err != nil {
			t.Errorf("a run that needs less: %v", err)
		}
	}
}

// TestArenaIsFreed: the memory goes back with the arena, and the place can have another one.
func TestArenaIsFreed(t *testing.T) {
	const n = 9 << 20 // 36 MB, which the C library gives back at once
	w, grad := zeros(t, []int{n}), zeros(t, []int{n})
	cycle := func() {
		a := arena(t, 0)
		s, b := productOf(t, a, w, grad)
		if err := b.Run(nil); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Close(), a.Close(), a.Close()); err != nil {
			t.Fatal(err)
		}
		if size := arenaBytes(t, a); size != 0 {
			t.Errorf("a closed arena has %d bytes", size)
		}
	}
	cycle()
	before := Resident(t)
	for range 3 {
		cycle()
	}
	if grown := Resident(t) - before; grown > 4*n {
		t.Errorf("3 cycles leave %d MB", grown>>20)
	}
}

func TestArenaErrors(t *testing.T) {
	if _, err := NewArena(Host, -1); err == nil || err.Error() != "arena: a limit of -1 bytes" {
		t.Errorf("negative limit: %v", err)
	}
	_, err := NewArena(0, 0)
	if library, ok := errors.AsType[*LibraryError](err); !ok || !library.CUDA {
		t.Errorf("on a GPU of the library for CPUs: %v", err)
	}
	a := arena(t, 0)
	if _, err := NewArena(Host, 0); err == nil || err.Error() != "arena: this place has one already" {
		t.Errorf("a second one: %v", err)
	}
	for _, tt := range []struct {
		name string
		cuda CUDA
		want string
	}{
		{
			"limit", CUDA{Stream: 8, MemoryLimit: 1},
			"open add_one.onnx: a session with an arena has no memory limit of its own",
		},
		{"device", CUDA{Stream: 8}, "open add_one.onnx: the arena is on another device than the session"},
	} {
		_, err := NewSession(SessionConfig{Path: "testdata/add_one.onnx", CUDA: &tt.cuda, Arena: a})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if _, err := NewSession(SessionConfig{Path: "testdata/none.onnx", Arena: a}); err == nil {
		t.Error("a session without a graph")
	}
	if err := a.Close(); err != nil {
		t.Errorf("sessions that failed to open use the arena: %v", err)
	}
	if _, err := NewSession(SessionConfig{Path: "testdata/add_one.onnx", Arena: a}); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed arena: %v", err)
	}
}

// TestArenaServesOneStream needs no GPU, because no session is opened.
func TestArenaServesOneStream(t *testing.T) {
	a := &Arena{place: 1, sessions: map[*Session]bool{}}
	on := func(stream uintptr) *Session { return &Session{cuda: &CUDA{Device: 1, Stream: stream}} }
	first, second := on(8), on(8)
	if err := errors.Join(a.join(first), a.join(second)); err != nil {
		t.Fatal(err)
	}
	a.leave(first)
	if err := a.join(on(16)); err == nil || err.Error() != "the arena serves sessions of another stream" {
		t.Errorf("another stream: %v", err)
	}
	a.leave(second)
	if err := a.join(on(16)); err != nil {
		t.Errorf("another stream, after all others: %v", err)
	}
}
