package ort

/*
#include <stdlib.h>
#include "ort.h"

// arena_register creates an arena and registers it with the environment: the process has only one, which is counted.
static OrtStatus *arena_register(const char *provider, const OrtMemoryInfo *info, size_t limit, OrtEnv **env) {
	// The default strategy doubles the arena whenever it is too small. By default, a piece that is up to 128 MB, but
	// not twice as large as requested, is not divided.
	static const char *const keys[] = {"max_mem", "arena_extend_strategy", "max_dead_bytes_per_chunk"};
	const size_t values[] = {limit, 1, 256};
	OrtArenaCfg *config;
	OrtStatus *s = ORT(CreateArenaCfgV2)(keys, values, sizeof keys / sizeof *keys, &config);
	if (s) return s;
	if (!(s = ORT(CreateEnv)(ORT_LOGGING_LEVEL_FATAL, "", env))) {
		s = ORT(CreateAndRegisterAllocatorV2)(*env, provider, info, config, NULL, NULL, 0);
		if (s) ORT(ReleaseEnv)(*env);
	}
	ORT(ReleaseArenaCfg)(config);
	return s;
}

static OrtStatus *arena_unregister(OrtEnv *env, const OrtMemoryInfo *info) {
	OrtStatus *s = ORT(UnregisterAllocator)(env, info);
	ORT(ReleaseEnv)(env);
	return s;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// Arena is memory for the intermediate values and the constants of several sessions. On a GPU, all of them must run on
// one stream: a value may take memory that a run before it uses until the GPU has reached its end. So sessions that run
// in turn need together about as much memory as the largest of them. Run that one first: the others find room in its
// memory.
//
// With CUDA graphs, open all sessions before the first run that captures one: what a later session stores for good may
// get memory that the graph overwrites. Close the arena before the GPU's context.
type Arena struct {
	place Place
	env   *C.OrtEnv
	info  *cMemoryInfo

	mu       sync.Mutex
	sessions map[*Session]bool // users, and whether they are open
	stream   uintptr           // of all users
	size     int               // the last measurement, and its error
	err      error
	closed   bool
}

// NewArena creates an arena, of which a place has at most one. It grows by what is needed, up to limit bytes; 0 means
// no limit. A run that needs more fails with [ErrOutOfMemory].
func NewArena(p Place, limit int) (*Arena, error) {
	a, err := newArena(p, limit)
	if err != nil {
		return nil, fmt.Errorf("arena: %w", err)
	}
	return a, nil
}

func newArena(p Place, limit int) (*Arena, error) {
	if limit < 0 {
		return nil, fmt.Errorf("a limit of %d bytes", limit)
	}
	if err := retain(arenaKind); err != nil {
		return nil, err
	}
	err := errors.New("this place has one already") // ONNX Runtime would replace it, for new sessions
	if reserveArena(p, true) {
		a := &Arena{place: p, sessions: map[*Session]bool{}}
		if err = a.register(limit); err == nil {
			return a, nil
		}
		reserveArena(p, false)
	}
	release(arenaKind)
	return nil, err
}

func (a *Arena) register(limit int) error {
	var err error
	if a.info, err = newInfo(a.place, C.OrtArenaAllocator); err != nil {
		return err
	}
	provider := "CPUExecutionProvider"
	if a.place != Host {
		provider = C.CUDA_PROVIDER
		if err := loadCUDA(); err != nil { // or ONNX Runtime would end the process
			releaseInfo(a.info)
			return err
		}
	}
	name := C.CString(provider)
	defer C.free(unsafe.Pointer(name))
	if err = check(C.arena_register(name, a.info, C.size_t(limit), &a.env)); err == nil {
		return nil
	}
	releaseInfo(a.info)
	return err
}

// Bytes returns the memory that the arena has allocated. It stays allocated until the arena is closed, or a run with
// [RunOptions.ShrinkArenas] releases it.
func (a *Arena) Bytes() (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s, open := range a.sessions {
		if open {
			a.measure(s)
			break
		}
	}
	return a.size, a.err
}

// measure asks a session, because ONNX Runtime gives no other access to the arena. It requires the lock.
func (a *Arena) measure(s *Session) {
	if a.size, a.err = stats(s.pointer(), a.info, "TotalAllocated"); a.err != nil {
		a.err = fmt.Errorf("arena: %w", a.err)
	}
}

// join makes a session that is about to be opened a user of the arena.
func (a *Arena) join(s *Session) error {
	var stream uintptr
	if s.cuda != nil {
		stream = s.cuda.Stream
		if s.cuda.MemoryLimit != 0 {
			return errors.New("a session with an arena has no memory limit of its own")
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return fmt.Errorf("arena: %w", ErrClosed)
	case s.place() != a.place:
		return errors.New("the arena is on another device than the session")
	case len(a.sessions) > 0 && stream != a.stream:
		return errors.New("the arena serves sessions of another stream")
	}
	a.sessions[s], a.stream = false, stream
	return nil
}

// opened records that a session can be asked for the size of the arena.
func (a *Arena) opened(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions[s] = true
}

// leave ends the use by a session that is about to be closed.
func (a *Arena) leave(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[s] {
		a.measure(s) // later there may be no session to ask
	}
	delete(a.sessions, s)
}

// Close releases the memory. All sessions that use the arena must be closed.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil
	case len(a.sessions) > 0:
		return fmt.Errorf("arena: %d sessions use it", len(a.sessions))
	}
	a.closed, a.size = true, 0
	err := check(C.arena_unregister(a.env, a.info))
	releaseInfo(a.info)
	reserveArena(a.place, false)
	release(arenaKind)
	return err
}
