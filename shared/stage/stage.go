package stage

import (
	"context"
	"fmt"
)

// Stage is what an author writes: one thing that is done to a batch. The host makes one value for each instance
// in its pipeline, calls Configure once, and then Process for every batch. A Stage may be an [Attacher] and an io.Closer too: it is
// closed by [Server.Close], but not when a plugin's process ends, which gives back everything by itself.
type Stage interface {
	// Configure takes the instance's configuration and checks what can be checked before the first step, such as
	// the shapes of every bucket. Its error refuses the run and is shown to the user, with a line "hint: ..."
	// when it has a method Hint() string.
	Configure(ctx context.Context, cfg *Config) error

	// Process works on one batch in place. It may be called for several batches at the same time, from at most
	// runtime.GOMAXPROCS(0) goroutines; so what Configure prepared is read only, and scratch memory comes from
	// the call or a sync.Pool. b and every slice of it are invalid once Process has returned.
	//
	// An error, or a panic in the calling goroutine, fails the whole batch, which the host then builds anew; a row that
	// cannot be used is no error but b.Reject. ctx ends with the process's connection to the host.
	Process(ctx context.Context, b *Batch) error
}

// Attacher is a Stage that is told of the shared memory that its batches will lie in: to register it with a GPU's driver, for one, so
// that copies are fast. Attach is called once, behind Configure and before the first Process; its error refuses the run. The memory
// stays mapped until the process ends, or until Close has returned where the stage is an io.Closer. What lies in it is no business
// of Attach.
type Attacher interface {
	Attach(memory []byte) error
}

// Plugin says what a program serves. ID, Version and the names of Stages are those of its plugin.json.
type Plugin struct {
	ID      string
	Version string
	// Stages makes a new Stage for each instance, by stage name.
	Stages map[string]func() Stage
}

func (p Plugin) check() error {
	switch {
	case p.ID == "":
		return fmt.Errorf("plugin without an ID")
	case p.Version == "":
		return fmt.Errorf("plugin %s: no Version", p.ID)
	case len(p.Stages) == 0:
		return fmt.Errorf("plugin %s: no Stages", p.ID)
	}
	for name, make := range p.Stages {
		if make == nil {
			return fmt.Errorf("plugin %s: stage %q has no function", p.ID, name)
		}
	}
	return nil
}
