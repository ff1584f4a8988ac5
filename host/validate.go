package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/doctor"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/place"
	"github.com/xtts-host/xtts-host/host/probe"
	"github.com/xtts-host/xtts-host/host/record"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/validate"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Validate tries what a run with these settings would do, up to three steps of it, and says of each part whether it works. Nothing
// of it is left. asJSON writes a validate.Report for programs to console.Out, and the text for people to console.Err. version is that
// of the program.
//
// The error of a check that failed has the exit status that training would have ended with.
func Validate(ctx context.Context, set *config.Set, version string, asJSON bool, console Console) (err error) {
	out := console.Out
	if asJSON {
		console.Out = console.Err
	}
	ctx, done := stoppable(ctx, console)
	defer done()
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
	machine := v.look(ctx, version)
	sections := []validate.Section{
		{Title: "prerequisites", Checks: refusing(machine.Prerequisites())},
		{Title: "placement and settings", Checks: refusing(append(machine.Placement(), v.settings()...))},
		{Title: "model", Checks: v.modelChecks()},
		{Title: "transfer", Checks: validate.Transfer(&validatedRoad{v.job, command}, checkGraphs)},
		{Title: "pipeline", Checks: v.pipelineChecks()},
	}
	for _, s := range sections {
		eachError(s.Checks, func(err error) error { return hint.Errorf(exit.Hint(err), "%w", err) }) // also a hint that only Hint knows
	}
	r, err := validate.Run(ctx, sections, console.Out)
	if err != nil {
		return err
	}
	if asJSON {
		if err := report.JSON(out, r); err != nil {
			return err
		}
	}
	if cross := r.Err(); cross != nil {
		_, failed, _ := r.Count()
		return hint.Errorf("the lines with a cross say what to do", "%w", &invalid{failed, cross})
	}
	return nil
}

// invalid is the error of a validation with crosses. It has the first one's exit status and not its text, which has been told.
type invalid struct {
	crosses int
	first   error
}

func (e *invalid) Error() string {
	return "training cannot work here as asked: " + report.Count(e.crosses, "problem")
}
func (e *invalid) Unwrap() error { return e.first }

// refusing marks what fails as what training refuses before its first step.
func refusing(checks []validate.Check) []validate.Check {
	return eachError(checks, func(err error) error { return exit.Refused(err) })
}

// eachError replaces the errors of checks, in place.
func eachError(checks []validate.Check, by func(error) error) []validate.Check {
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

// validation is a run that is tried part by part. All of it belongs to one goroutine, which the checks of the model lock to its thread.
type validation struct {
	*run
	command probe.Command
	temp    string // folder of what a run writes; empty before there is any
	steps   rehearsal
	closed  bool
}

func newValidation(set *config.Set, command probe.Command, console Console) *validation {
	bus := event.NewBus()
	bus.Offer("console", report.NewConsole(io.Discard, console.Err), nil)
	j := &job{set: set, cfg: &set.Config, log: slog.New(record.Warnings(func(w *event.Warning) { bus.Publish(w) }))}
	quiet := Console{Out: io.Discard, Err: io.Discard, Stop: console.Stop}
	return &validation{run: &run{job: j, bus: bus, console: quiet}, command: command}
}

// look asks about the machine in other processes.
func (v *validation) look(ctx context.Context, version string) *validate.Machine {
	c := v.cfg
	return &validate.Machine{
		Report: doctor.Examine(ctx, doctor.Config{
			Command: v.command, OnCPU: c.Device == place.CPU, CUDA: cuda.Built, Library: c.ORTLib, Version: version,
			Place: func(m gpu.Machine) (place.Placement, error) { return place.On(place.RequestOf(c), m) },
		}),
		Request: place.RequestOf(c), Place: place.On,
		Placed: func(p place.Placement) { v.placement = p },
	}
}

// close takes down what the checks have made. It is idempotent, and a check itself.
func (v *validation) close() error {
	if v.closed {
		return nil
	}
	v.closed = true
	v.closeStart()
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	err := v.job.close(ctx)
	if v.temp != "" {
		err = errors.Join(err, os.RemoveAll(v.temp))
	}
	err = errors.Join(err, v.bus.Close())
	return err
}

// validatedRoad is the road of a job's batches. The caller's thread is bound to the model's GPU.
type validatedRoad struct {
	*job
	command probe.Command
}

// Sizes implements validate.Road, as all that follows.
func (r *validatedRoad) Sizes() []int {
	sizes := make([]int, len(r.layouts))
	for i, l := range r.layouts {
		sizes[i] = l.InputBytes
	}
	return sizes
}

func (r *validatedRoad) Slots() int           { return r.slots }
func (r *validatedRoad) From() string         { return placeName(r.placement.Data) }
func (r *validatedRoad) To() string           { return placeName(r.placement.Model) }
func (r *validatedRoad) Ring(slot int) []byte { return r.ring.Slot(slot) }
func (r *validatedRoad) Load(device, bucket, slot int) error {
	return r.model.Load(device, bucket, r.ring.Slot(slot))
}
func (r *validatedRoad) Unload(device, bucket, slot int) error {
	return r.model.Unload(device, bucket, r.ring.Slot(slot))
}

// Relay has a process of its own do it: nothing but plugins may have a context on the data GPU, this process least of all.
func (r *validatedRoad) Relay(ctx context.Context, n int) (time.Duration, error) {
	data := r.placement.Data.GPU
	done, err := r.command.Relay(ctx, r.ring, probe.Relay{From: 0, To: 1, Bytes: n, UUID: data.UUID})
	if err == nil && done.Device.UUID != data.UUID {
		err = fmt.Errorf("it went through %s instead of %s", done.Device, data)
	}
	return done.Out, err
}

// placeName is where a role is.
func placeName(s place.Role) string {
	s.Limit = 0
	return s.String()
}
