package stage

import (
	"context"
	"fmt"
)

// Stage is one operation on a batch. Plugin authors implement it. The host creates one value for each instance in its
// pipeline, calls Configure once, and then Process for every batch. A Stage may also implement [Attacher] and
// io.Closer. [Server.Close] closes it; the end of a plugin process does not, because it releases all resources anyway.
type Stage interface {
	// Configure gets the configuration of the instance. It should check everything that can be checked before the first
	// step, such as the shapes of every bucket. An error refuses the run. The host shows it to the user, with a line
	// "hint: ..." if the error has a method Hint() string.
	Configure(ctx context.Context, cfg *Config) error

	// Process processes one batch in place. The host may call it for several batches at the same time, from at most
	// runtime.GOMAXPROCS(0) goroutines. So treat what Configure prepared as read-only, and take scratch memory from the
	// call or a sync.Pool. b and its slices are invalid after Process has returned.
	//
	// An error, or a panic in the calling goroutine or in one of EachRow, fails the whole batch, and the host rebuilds
	// it. A panic in another goroutine ends the process. An unusable row is not an error: call b.Reject. ctx ends with
	// the connection to the host.
	Process(ctx context.Context, b *Batch) error
}

// Attacher is a Stage that needs the shared memory of all batches, for example to register it with the GPU driver for
// fast transfers. Attach is called once, after Configure and before the first Process. An error refuses the run. The
// memory stays mapped until the process ends or, if the stage is an io.Closer, until Close has returned. Attach must
// not read or write the memory.
type Attacher interface {
	Attach(memory []byte) error
}

// Plugin describes what a program serves. ID, Version and the names of Stages must be those in plugin.json.
type Plugin struct {
	ID      string
	Version string
	// Stages maps each stage name to a function that returns a new Stage for an instance.
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
