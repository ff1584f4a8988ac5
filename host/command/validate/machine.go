package validate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/command/doctor"
	"github.com/xtts-host/xtts-host/host/command/preflight"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Checks of a Machine that other checks depend on. Placement passes only if all of them pass.
const (
	Runtime   = "runtime"
	Placement = "placement"
)

// Machine has the input of the first two sections.
type Machine struct {
	// Report is the result of package doctor.
	Report *doctor.Report
	// Request is the requested placement, and Place resolves it as training does.
	Request place.Request
	Place   func(place.Request, gpu.Machine) (place.Placement, error)
	// Placed receives the placement.
	Placed func(place.Placement)
}

// Prerequisites checks the driver, ONNX Runtime with its libraries, and the number of GPUs.
func (m *Machine) Prerequisites() []preflight.Check {
	checks := []preflight.Check{
		{Name: "program", Try: m.said("program")},
		{Name: "machine", Try: m.said("machine")},
		{Name: "driver", Try: m.driver, Remedy: "install NVIDIA's driver, version 580 or later"},
		{Name: Runtime, Try: m.runtime, Remedy: hint.Command("doctor says what is missing")},
		{Name: "number of GPUs", Needs: []string{"driver"}, Try: m.number},
	}
	if !m.Request.Ranks.Alone() {
		needs := []string{Runtime, "number of GPUs"}
		checks = append(checks, preflight.Check{Name: "NCCL", Needs: needs, Try: m.library})
	}
	return checks
}

// Placement checks the visible GPUs, the placement of the roles, and their memory limits.
func (m *Machine) Placement() []preflight.Check {
	return []preflight.Check{
		{Name: "visible GPUs", Needs: []string{"number of GPUs"}, Try: m.visible},
		{Name: Placement, Needs: []string{"visible GPUs"}, Try: m.placement},
		{Name: preflight.Limits, Needs: []string{Placement}, Try: m.limits},
	}
}

// findings returns those of a section of the doctor's report.
func (m *Machine) findings(title string) []doctor.Finding {
	for _, s := range m.Report.Sections {
		if s.Title == title {
			return s.Findings
		}
	}
	return nil
}

// bad combines the crosses of a section to one error, with every hint once.
func (m *Machine) bad(title string) error {
	var hints []string
	var faults []error
	for _, f := range m.findings(title) {
		if f.State != doctor.Bad {
			continue
		}
		for _, line := range strings.Split(f.Text, "\n") {
			faults = append(faults, errors.New(line))
		}
		if all := strings.Join(hints, "; "); f.Hint != "" && !strings.Contains(all, f.Hint) {
			hints = append(hints, f.Hint)
		}
	}
	if faults == nil {
		return nil
	}
	err := errors.Join(faults...)
	if hints == nil {
		return err
	}
	return hint.Errorf(strings.Join(hints, "; "), "%w", err)
}

// said repeats a section of the doctor's report.
func (m *Machine) said(title string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		var texts []string
		for _, f := range m.findings(title) {
			texts = append(texts, f.Text)
		}
		return strings.Join(texts, ", "), m.bad(title)
	}
}

// driver needs none on the CPU.
func (m *Machine) driver(ctx context.Context) (string, error) {
	said, err := m.said("driver")(ctx)
	switch {
	case err != nil:
		return "", err
	case m.onCPU():
		return "none needed on the CPU: " + said, nil
	case m.Report.Driver.Absent != "":
		return "", m.noDriver(said)
	}
	return said, nil
}

// noDriver returns the error of training without a driver, or that of the doctor if it has seen cards.
func (m *Machine) noDriver(said string) error {
	for _, f := range m.findings("driver") {
		if f.Hint != "" {
			return hint.Errorf(f.Hint, "%s", said)
		}
	}
	if _, err := m.Place(m.Request, m.machine()); err != nil {
		return err
	}
	return errors.New(said)
}

// onCPU reports whether the run uses the CPU: the CPU is requested, or no GPU is requested and there is none.
func (m *Machine) onCPU() bool {
	return m.Request.Device == place.CPU || m.Request.Needs() == 0 && len(m.Report.GPUs) == 0
}

// runtime names ONNX Runtime, and counts what else it loads.
func (m *Machine) runtime(context.Context) (string, error) {
	const title = "libraries"
	if err := m.bad(title); err != nil {
		return "", err
	}
	var found []string
	for _, f := range m.findings(title) {
		if f.State == doctor.OK {
			found = append(found, f.Text)
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("doctor reported nothing about ONNX Runtime")
	case 1:
		return found[0], nil
	}
	if m.onCPU() {
		return found[0], nil // the others are not needed
	}
	return fmt.Sprintf("%s, and for CUDA %d more", found[0], len(found)-1), nil
}

// number compares how many GPUs are asked for with how many there are. What is too few is said as training says it.
func (m *Machine) number(context.Context) (string, error) {
	n, needs := len(m.Report.GPUs), m.Request.Needs()
	if n < needs {
		_, err := m.placements(m.Request)
		return "", err
	}
	var kinds []string
	for _, g := range m.Report.GPUs {
		kind := fmt.Sprintf("%s with %d MB", g.Name, g.Total/gpu.MB)
		if i := len(kinds) - 1; i < 0 || kinds[i] != kind {
			kinds = append(kinds, kind)
		}
	}
	text := fmt.Sprintf("%d found, %d needed", n, needs)
	if n > 0 {
		text += ": " + strings.Join(kinds, ", ")
	}
	return text, nil
}

// machine is what the doctor looked at.
func (m *Machine) machine() gpu.Machine {
	out := gpu.Machine{Driver: m.Report.Driver, Links: m.Report.Links}
	for _, g := range m.Report.GPUs {
		out.Cards = append(out.Cards, g.Card)
	}
	return out
}

// visible reports the GPUs that CUDA_VISIBLE_DEVICES leaves.
func (m *Machine) visible(context.Context) (string, error) {
	if m.Request.Visible == nil {
		return "all: CUDA_VISIBLE_DEVICES is not set", nil
	}
	var all []gpu.Device
	for _, g := range m.Report.GPUs {
		all = append(all, g.Device)
	}
	shown, err := gpu.Visible(*m.Request.Visible, all)
	if err != nil {
		return "", err
	}
	var names []string
	for _, d := range shown {
		names = append(names, fmt.Sprintf("GPU %d", d.Index))
	}
	if names == nil {
		names = []string{"none"}
	}
	return fmt.Sprintf("%s: CUDA_VISIBLE_DEVICES=%s", strings.Join(names, ", "), *m.Request.Visible), nil
}

// placement resolves the placement without memory limits, so that a wrong limit is reported by its own check.
func (m *Machine) placement(context.Context) (string, error) {
	free := m.Request
	free.Isolate = false
	all, err := m.placements(free)
	if err != nil {
		return "", err
	}
	text := all[0].String()
	for rank, p := range all[1:] {
		text += fmt.Sprintf("; that of rank %d on %s", rank+1, p.Model)
	}
	return text, nil
}

func (m *Machine) limits(context.Context) (string, error) {
	all, err := m.placements(m.Request)
	if err != nil {
		return "", err
	}
	p := all[0]
	m.Placed(p)
	switch {
	case p.Model.OnCPU():
		return "none: no GPU is used", nil
	case m.Request.Isolate:
		return "at most " + each(p,
				func(s place.Role) string { return fmt.Sprintf("%d of %d MB", s.Limit/gpu.MB, s.GPU.Memory/gpu.MB) }),
			nil
	}
	return "none; --enable-memory-isolation would give " + each(p,
			func(s place.Role) string { return fmt.Sprintf("%d MB", s.Plan/gpu.MB) }),
		nil
}

// each formats the roles that are on a GPU.
func each(p place.Placement, format func(place.Role) string) string {
	text := format(p.Model) + " for training"
	if !p.Data.OnCPU() {
		text = format(p.Data) + " for the plugins, " + text
	}
	return text
}
