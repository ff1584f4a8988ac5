package cli

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// sameSignal is how long after the first signal to stop another one is the same: timeout(1) signals the process and
	// its group, some schedulers signal twice, and a person may hit Ctrl-C twice in haste.
	sameSignal = time.Second
	// lastWords is how long a process that stops at once waits for its message to be read: the terminal may be stopped.
	lastWords = 100 * time.Millisecond
)

// reactions are what signals make the program do.
type reactions struct {
	stop   chan struct{} // closed by the first signal to stop
	save   chan struct{} // of capacity 1: a checkpoint is asked for
	atOnce func()        // called for a later signal to stop
	end    func()        // ends the reactions
}

// catch starts to react to the signals of the process.
func catch(atOnce func()) reactions {
	r := reactions{stop: make(chan struct{}), save: make(chan struct{}, 1), atOnce: atOnce}
	// SIGPIPE is caught so that writing to a reader that has gone is an error and not the end of the program. It is not
	// ignored, which plugins would inherit.
	caught := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGPIPE}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		caught = append(caught, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, caught...)
	r.end = func() { signal.Stop(signals); close(signals) }
	go r.serve(signals)
	return r
}

// serve reacts until the channel is closed.
func (r reactions) serve(signals <-chan os.Signal) {
	var first time.Time
	for s := range signals {
		switch {
		case s == syscall.SIGPIPE: // the write has failed, which is enough
		case s == syscall.SIGUSR1:
			select {
			case r.save <- struct{}{}:
			default: // one is asked for already
			}
		case first.IsZero():
			first = time.Now()
			close(r.stop)
		case s == syscall.SIGHUP: // a terminal that is gone is no impatient person
		case time.Since(first) >= sameSignal:
			r.atOnce()
		}
	}
}

// stopAtOnce ends the process, and says what that means. Plugins see the end of the host by themselves, and every
// checkpoint on the disk is whole.
func stopAtOnce(means string) {
	said := make(chan struct{})
	go func() {
		io.WriteString(os.Stderr, "error: stopped immediately"+means+"\n")
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	os.Exit(1)
}
