// Package engine opens the plugins and the model of a plan for a command that computes with them as a run does, and has
// no run folder:
//
//	e, err := engine.Open(ctx, p, console)
//	defer e.Close()
//
// OpenPlugins opens no model, for a command that has only the stages compute.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/observe/runlog"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
)

// Engine is what a command computes with. The console gets the warnings of its Log.
type Engine struct {
	Bus     *event.Bus
	Log     *slog.Logger
	Machine *machine.Machine
	Session *session.Session // nil after OpenPlugins
}

// Open starts the plugins and opens the graphs, which have no weights yet. The calling goroutine is the one that
// computes.
func Open(ctx context.Context, p *plan.Plan, console console.Console) (*Engine, error) {
	return open(ctx, p, console, func(e *Engine) *featurecache.Config { return machine.CacheOf(p.Config, e.Log) },
		func(e *Engine) error {
			e.Session = session.New(p, batch.Overlapped, e.Machine.Watch, e.Log)
			if err := e.Session.OpenBeside(ctx, e.Machine.Ring.Bytes(), e.Machine.StartPlugins); err != nil {
				return err
			}
			_, err := e.Session.Prepare(ctx)
			return err
		})
}

// OpenPlugins starts the plugins, with a feature cache of the caller.
func OpenPlugins(
	ctx context.Context, p *plan.Plan, console console.Console, cache *featurecache.Config,
) (*Engine, error) {
	return open(ctx, p, console, func(*Engine) *featurecache.Config { return cache }, func(e *Engine) error {
		if err := e.Machine.StartPlugins(ctx); err != nil {
			return cmp.Or(context.Cause(ctx), err) // the reason for the stop, not its effect
		}
		return nil
	})
}

// open opens the machine with a feature cache, and then what start opens on it.
func open(
	ctx context.Context, p *plan.Plan, console console.Console, cache func(*Engine) *featurecache.Config,
	start func(*Engine) error,
) (_ *Engine, err error) {
	e := &Engine{Bus: event.NewBus()}
	e.Bus.Offer("console", report.NewConsole(io.Discard, console.Messages(), nil), nil)
	e.Log = slog.New(runlog.NewWarnings(func(w *event.Warning) { e.Bus.Publish(w) }))
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	e.Machine, err = machine.Open(ctx, machine.Config{
		Plan: p, Log: e.Log, Inventory: inventory.Open, Memory: func(*event.Memory) {}, Cache: cache(e),
		Say: func(line string) { fmt.Fprintln(console.Err, line) },
	})
	if err != nil {
		return nil, err
	}
	if err := start(e); err != nil {
		return nil, err
	}
	return e, nil
}

// Close closes everything. A nil Engine has nothing to close.
func (e *Engine) Close() error {
	if e == nil {
		return nil
	}
	var errs []error
	if e.Session != nil {
		errs = append(errs, e.Session.Close())
	}
	if e.Machine != nil {
		errs = append(errs, e.Machine.Close())
	}
	return errors.Join(append(errs, e.Bus.Close())...)
}
