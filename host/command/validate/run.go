package validate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/command/doctor"
	"github.com/xtts-host/xtts-host/host/command/preflight"
	"github.com/xtts-host/xtts-host/host/command/probe"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/observe/runlog"
	"github.com/xtts-host/xtts-host/host/run/loop"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
)

// Run runs the command: it tries the parts of a run with these settings, up to three steps of training, and reports
// whether each works. It removes everything that it creates. asJSON writes a Report to console.Out, and the text to
// console.Err. version is the version of the program.
//
// The error of a check that failed has the exit status that training would have ended with.
func Run(ctx context.Context, set *config.Set, version string, asJSON bool, console console.Console) (err error) {
	out := console.Out
	if asJSON {
		console.Out = console.Err
	}
	ctx, done := console.Stoppable(ctx, "step")
	defer done()
	defer files.WaitWith(console.Patience(set.DiskWait))()
	command, err := probe.Self()
	if err != nil {
		return err
	}
	v := newValidation(set, command, console)
	defer func() {
		if cerr := v.close(); err == nil {
			err = cerr
		}
	}()
	sections := append(v.beforeModel(ctx, version),
		Section{Title: "model", Checks: v.modelChecks()},
		Section{Title: "transfer", Checks: Transfer(&route{v}, checkGraphs)},
		Section{Title: "pipeline", Checks: v.pipelineChecks()},
	)
	r, err := Try(ctx, sections, console.Out)
	if err != nil {
		return err
	}
	if asJSON {
		if err := report.JSON(out, r); err != nil {
			return err
		}
	}
	if fault := r.Err(); fault != nil {
		_, failed, _ := r.Count()
		return preflight.Failed(failed, fault)
	}
	return nil
}

// refusing marks errors as refusals, because training would return them before its first step.
func refusing(checks []preflight.Check) []preflight.Check {
	return eachError(checks, func(err error) error { return exit.Refused(err) })
}

// eachError replaces the errors of checks, in place.
func eachError(checks []preflight.Check, by func(error) error) []preflight.Check {
	for i, c := range checks {
		checks[i].Try = func(ctx context.Context) (string, error) {
			detail, err := c.Try(ctx)
			if err != nil {
				err = by(err)
			}
			return detail, err
		}
	}
	return checks
}

// validation is a run that is tried part by part. It is used by one goroutine only, which the checks of the model lock
// to its thread.
type validation struct {
	set     *config.Set
	draft   *plan.Draft
	machine *machine.Machine // nil before the model's check, as the session
	session *session.Session
	loop    *loop.Loop
	bus     *event.Bus
	log     *slog.Logger
	stop    <-chan struct{}
	command probe.Command
	looked  *Machine

	began  time.Time
	peak   int64 // bytes that training took of the model's GPU
	steps  rehearsal
	closed bool
}

func newValidation(set *config.Set, command probe.Command, console console.Console) *validation {
	if !set.Given("verify-plugins") {
		set.VerifyPlugins = !set.Debug // unless the user has set it
	}
	set.World = worldOf(&set.Config)
	bus := event.NewBus()
	bus.Offer("console", report.NewConsole(io.Discard, console.Messages(), nil), nil)
	log := slog.New(runlog.NewWarnings(func(w *event.Warning) { bus.Publish(w) }))
	return &validation{
		set: set, draft: plan.NewDraft(set, console.Waiting()), bus: bus, log: log, stop: console.Stop,
		command: command,
	}
}

// beforeModel returns the sections that create nothing of the run.
func (v *validation) beforeModel(ctx context.Context, version string) []Section {
	v.looked = v.look(ctx, version)
	return []Section{
		{Title: "prerequisites", Checks: refusing(v.looked.Prerequisites())},
		{Title: "placement and settings", Checks: refusing(append(v.looked.Placement(),
			preflight.Settings(v.draft, v.set)...))},
	}
}

// look inspects the machine in other processes.
func (v *validation) look(ctx context.Context, version string) *Machine {
	c := v.draft.Config
	return &Machine{
		Report: doctor.Examine(ctx, doctor.Config{
			Command: v.command, OnCPU: c.Device == place.CPU, Library: c.ORTLib, Version: version,
			Sandbox: sandbox.Mode(c.Sandbox),
			Place:   func(m gpu.Machine) (place.Placement, error) { return place.Decide(place.RequestOf(c), m) },
		}),
		Request: place.RequestOf(c), Place: place.Decide,
		Placed: func(p place.Placement) { v.draft.Placement = p },
	}
}

// close closes everything that the checks have opened. It is idempotent, and a check itself.
func (v *validation) close() error {
	if v.closed {
		return nil
	}
	v.closed = true
	errs := []error{v.draft.Close()}
	if v.session != nil {
		errs = append(errs, v.session.Close())
	}
	if v.machine != nil {
		errs = append(errs, v.machine.Close())
	}
	return errors.Join(append(errs, v.bus.Close())...)
}

// route is the path of the run's batches. The caller's thread is bound to the model's GPU.
type route struct{ *validation }

// Sizes implements Route, as do the methods below.
func (r *route) Sizes() []int {
	layouts := r.draft.Slots.Layouts
	sizes := make([]int, len(layouts))
	for i, l := range layouts {
		sizes[i] = l.InputBytes
	}
	return sizes
}

func (r *route) Slots() int           { return r.draft.Slots.Device }
func (r *route) From() string         { return placeName(r.draft.Placement.Data) }
func (r *route) To() string           { return placeName(r.draft.Placement.Model) }
func (r *route) Ring(slot int) []byte { return r.machine.Ring.Slot(slot) }
func (r *route) Load(device, bucket, slot int) error {
	return r.session.Model.Load(device, bucket, r.machine.Ring.Slot(slot))
}
func (r *route) Unload(device, bucket, slot int) error {
	return r.session.Model.Unload(device, bucket, r.machine.Ring.Slot(slot))
}

// Relay copies in a separate process: only plugins may have a context on the data GPU, and this process must not.
func (r *route) Relay(ctx context.Context, n int) (time.Duration, error) {
	data := r.draft.Placement.Data.GPU
	done, err := r.command.Relay(ctx, r.machine.Ring, probe.Relay{From: 0, To: 1, Bytes: n, UUID: data.UUID})
	if err == nil && done.Device.UUID != data.UUID {
		err = fmt.Errorf("it went through %s instead of %s", done.Device, data)
	}
	return done.Out, err
}

// placeName names the device of a role.
func placeName(s place.Role) string {
	s.Limit = 0
	return s.String()
}
