package cli

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
)

// TestSignals sends signals in virtual time.
func TestSignals(t *testing.T) {
	const usr1, hup, pipe = syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGPIPE
	type sent struct {
		at     time.Duration
		signal os.Signal
	}
	for _, tt := range []struct {
		name                string
		signals             []sent
		stops, saves, ended bool
	}{
		{"nothing", nil, false, false, false},
		{"interrupt", []sent{{0, os.Interrupt}}, true, false, false},
		{"terminate", []sent{{0, syscall.SIGTERM}}, true, false, false},
		{"hang up", []sent{{0, hup}}, true, false, false},
		{"save", []sent{{0, usr1}, {0, usr1}, {time.Hour, usr1}}, false, true, false},
		{"closed output", []sent{{0, pipe}, {time.Second, pipe}}, false, false, false},
		{"twice at the same time", []sent{{0, syscall.SIGTERM}, {0, syscall.SIGTERM}}, true, false, false},
		{
			"twice within a second", []sent{{0, os.Interrupt}, {999 * time.Millisecond, os.Interrupt}}, true, false,
			false,
		},
		{
			"two kinds within a second",
			[]sent{{0, os.Interrupt}, {time.Millisecond, syscall.SIGTERM}, {2 * time.Millisecond, hup}}, true, false,
			false,
		},
		{"again after a second", []sent{{0, os.Interrupt}, {time.Second, os.Interrupt}}, true, false, true},
		{
			"doubled, then again", []sent{{0, os.Interrupt}, {0, os.Interrupt}, {2 * time.Second, os.Interrupt}}, true,
			false, true,
		},
		{"hung up, then again", []sent{{0, hup}, {time.Minute, hup}, {0, pipe}, {0, usr1}}, true, true, false},
		{"hung up, then interrupted", []sent{{0, hup}, {time.Minute, os.Interrupt}}, true, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := false
				r := reactions{stop: make(chan struct{}), save: make(chan struct{}, 1), atOnce: func() { ended = true }}
				signals := make(chan os.Signal)
				go r.serve(signals)
				for _, s := range tt.signals {
					time.Sleep(s.at)
					signals <- s.signal
				}
				close(signals)
				synctest.Wait()
				stops := false
				select {
				case <-r.stop:
					stops = true
				default:
				}
				if stops != tt.stops || (len(r.save) == 1) != tt.saves || ended != tt.ended {
					t.Errorf("stops %v, saves %d, ended %v", stops, len(r.save), ended)
				}
			})
		})
	}
}

// TestInterruptible: a signal that nohup has switched off does nothing, two at once are one, and nothing is left.
func TestInterruptible(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, stop := interruptible(t.Context())
	send := func(s syscall.Signal) {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if send(syscall.SIGHUP); ctx.Err() != nil {
		t.Error("it reacts to SIGHUP")
	}
	send(syscall.SIGINT)
	<-ctx.Done()
	send(syscall.SIGINT) // ends the process of the test if nothing reacts
	if context.Cause(ctx) != exit.ErrInterrupted {
		t.Error(context.Cause(ctx))
	}
	stop()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if left := stacks[:runtime.Stack(stacks, true)]; !bytes.Contains(left, []byte("reactions.serve")) {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%s", left)
		}
	}
}
