package preflight

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/command/inspect"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/summary"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train/memory"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Checks that other checks depend on. A caller may put a check with the name Limits before these.
const (
	Limits   = "memory limits"
	Bundle   = "bundle"
	Data     = "data set"
	Plugins  = "plugins"
	Buffers  = "buffers"
	Learning = "learning"
	Memory   = "memory plan"
	Start    = "start"
)

// Settings returns the checks that complete the draft, and those of the files that a run with these settings writes.
// The placement of the draft is decided.
func Settings(draft *plan.Draft, set *config.Set) []Check {
	s := &settings{draft, set}
	checks := []Check{
		{Name: Bundle, Try: s.bundle, Remedy: hint.Command("graph inspect BUNDLE says what is in one")},
		{Name: Data, Needs: []string{Bundle}, Try: s.data, Remedy: "docs/data.md says how a data set is laid out"},
		{Name: Plugins, Needs: []string{Bundle, Limits}, Try: s.plugins, Remedy: hint.Command(
			"plugins list says which can be started")},
		{
			Name: Buffers, Needs: []string{Data, Plugins}, Try: s.buffers,
			Remedy: "try a smaller --batch-size, or a larger --ring-memory",
		},
		{Name: Learning, Needs: []string{Buffers}, Try: s.learning},
		{Name: Memory, Needs: []string{Buffers}, Try: s.memory},
	}
	if set.Samples != "" || set.SpokenClips > 0 || set.BestBy != report.ByLoss ||
		set.Recognizer != "" {
		checks = append(checks, Check{
			Name: "samples", Needs: []string{Data}, Try: s.samples,
			Remedy: "docs/synthesize.md says what can be spoken",
		})
	}
	if len(set.Probe) > 0 {
		checks = append(checks, Check{Name: "probes", Needs: []string{Data}, Try: s.probes})
	}
	if set.Resume != "" || set.Init != "" {
		checks = append(checks, Check{
			Name: Start, Needs: []string{Buffers}, Try: s.start, Remedy: "name another --resume or --init, or omit it",
		})
	}
	return append(checks, outputs(set)...)
}

type settings struct {
	draft *plan.Draft
	set   *config.Set
}

func (s *settings) bundle(ctx context.Context) (string, error) {
	if err := s.draft.OpenBundle(ctx); err != nil {
		return "", err
	}
	m, n := s.draft.Bundle.Manifest, 0
	for _, p := range m.Parameters {
		n += p.Elements()
	}
	sizes := s.draft.Buckets.Sizes
	lengths := fmt.Sprintf("%s up to %s", units.Count(len(sizes), "bucket"),
		inspect.Symbols(sizes[len(sizes)-1], m.Inputs))
	if longest := m.LongestClip(); longest > 0 {
		lengths = fmt.Sprintf("clips of up to %.1f s", longest)
	}
	kept := ""
	if len(m.State) > 0 {
		kept = units.Count(len(m.State), "tensor") + " of state, "
	}
	return fmt.Sprintf("%s: %s parameters in %s, %s%s", m.Name, units.Thousands(n), s.draft.Precision, kept, lengths),
		nil
}

func (s *settings) data(ctx context.Context) (string, error) {
	if err := s.draft.OpenData(ctx); err != nil {
		return "", err
	}
	ix := s.draft.Data.Train.Index
	text := fmt.Sprintf("%s: %s, %s", filepath.Join(ix.Dir, ix.List), units.Count(len(ix.Rows), "clip"),
		units.Count(len(ix.Speakers), "speaker"))
	unusable := s.unusable()
	q, err := batch.OpenQuarantine("", s.draft.Data, s.set.MaxQuarantine, nil, nil)
	if err != nil { // as a run ends before its first step
		for line := range strings.Lines(strings.TrimPrefix(unusable, "\n")) {
			err = errors.Join(err, errors.New(strings.TrimSuffix(line, "\n")))
		}
		return "", err
	}
	return text + unusable, q.Close()
}

// unusable names the lines of the lists that cannot be used, each in a line of the text.
func (s *settings) unusable() string {
	var text strings.Builder
	for _, split := range s.draft.Data.Splits() {
		ix := split.Index
		if len(ix.Rejected) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n%s of %s cannot be used:", units.Count(len(ix.Rejected), "line"), ix.List)
		for _, line := range split.Unusable(ix.Rejected) {
			text.WriteString("\n  " + line)
		}
	}
	return text.String()
}

func (s *settings) samples(ctx context.Context) (string, error) {
	if err := s.draft.ReadSamples(ctx); err != nil {
		return "", err
	}
	var parts []string
	if n := len(s.draft.Samples.Sentences); n > 0 {
		parts = append(parts, fmt.Sprintf("%s: %s", s.set.Samples, units.Count(n, "sentence")))
	}
	if n := len(s.draft.Samples.Clips); n > 0 {
		parts = append(parts, units.Count(n, "clip")+" of the validation data")
	}
	if len(parts) == 0 {
		return "nothing is spoken at evaluations", nil
	}
	return strings.Join(parts, ", "), nil
}

func (s *settings) probes(ctx context.Context) (string, error) {
	if err := s.draft.SelectProbes(ctx); err != nil {
		return "", err
	}
	return units.Count(s.draft.Probes.Count(), "tensor") + " at each evaluation", nil
}

func (s *settings) plugins(ctx context.Context) (string, error) {
	if err := s.draft.ResolveStages(ctx); err != nil {
		return "", err
	}
	text := strings.Join(summary.Plugins(&s.draft.Plan), ", ")
	for _, f := range s.draft.Stages.DataUsed() {
		text += "; data folder " + f.String()
	}
	return text, nil
}

func (s *settings) buffers(ctx context.Context) (string, error) {
	d := s.draft
	if err := d.Fit(ctx); err != nil {
		return "", err
	}
	lines := slices.Concat([]string{summary.Clips(&d.Plan)}, d.Data.Usage.Train.Lines(),
		[]string{d.Data.Usage.Fit(d.Bundle.Manifest.Features)})
	ready := units.Count(min(d.Ring.Prefetch, d.Config.BufferSize), "batch")
	return fmt.Sprintf("%s; %s, %s; training starts with %s ready", strings.Join(lines, "; "), summary.Ring(&d.Plan),
		units.Count(d.Slots.Device, "device slot"), ready), nil
}

// Warnings returns those of a complete plan.
func Warnings(draft *plan.Draft) []string {
	lines := summary.Warnings(&draft.Plan)
	for i, line := range lines {
		lines[i] = unlisted(line)
	}
	return lines
}

// unlisted removes the name of a file that only a run writes.
func unlisted(text string) string {
	return strings.ReplaceAll(text, " ("+rundir.QuarantineFile+" names them)", "")
}

func (s *settings) learning(ctx context.Context) (string, error) {
	if err := s.draft.CheckLearning(ctx); err != nil {
		return "", err
	}
	text := units.Thousands(s.draft.Source().Total()) + " steps"
	for _, p := range s.draft.Players {
		text += ", "
		if p.Name != "" {
			text += p.Name + ": "
		}
		text += fmt.Sprintf("%s schedule, rate %g", p.Schedule.Name, p.Optimizer.LR)
		if w := p.Schedule.WarmupSteps; w > 0 {
			text += fmt.Sprintf(" after %s", units.Count(w, "warm-up step"))
		}
	}
	return text, nil
}

// memory adds up the memory that is known before the model is created. The memory of its graphs is known only after
// trial runs.
func (s *settings) memory(context.Context) (string, error) {
	d := s.draft
	p := d.MemoryFor(d.Slots)
	copies := ""
	if p.Copies > 0 {
		copies = fmt.Sprintf("bf16 copies of the weights %s MiB, ", units.Mebibytes(float64(p.Copies)))
	}
	text := fmt.Sprintf("weights, gradients and optimizer state %s MiB, %sdevice slots %s MiB",
		units.Mebibytes(float64(p.Arenas)), copies, units.Mebibytes(float64(p.Slots)))
	if p.Samples > 0 {
		text += fmt.Sprintf(", weights that --samples copies %s MiB", units.Mebibytes(float64(p.Samples)))
	}
	room, err := p.Room()
	switch {
	case err != nil:
		return "", err
	case room > 0:
		text += fmt.Sprintf(", CUDA %d MiB; %d MiB of %d are left for the graphs", memory.Libraries/gpu.MB, room/gpu.MB,
			p.Limit/gpu.MB)
	case d.OnGPU():
		text += fmt.Sprintf(", CUDA %d MiB; the GPU has %d MiB", memory.Libraries/gpu.MB,
			d.Placement.Model.GPU.Memory/gpu.MB)
	}
	return text, nil
}

func (s *settings) start(ctx context.Context) (string, error) {
	if err := s.draft.FindStart(ctx); err != nil {
		return "", err
	}
	if r := s.draft.Start.Resumed; r != nil {
		return fmt.Sprintf("%s: step %s", r.Path, units.Thousands(r.State.Step)), nil
	}
	return "weights of " + s.draft.Start.Weights.Path, nil
}
