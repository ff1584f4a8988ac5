package summary

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
)

// banner is lines with labels.
type banner struct{ text strings.Builder }

func (b *banner) row(label, format string, args ...any) {
	fmt.Fprintf(&b.text, "  %-12s %s\n", label, visible.Text(fmt.Sprintf(format, args...)))
}

// rows writes lines under one label.
func (b *banner) rows(label string, lines []string) {
	for _, line := range lines {
		b.row(label, "%s", line)
		label = ""
	}
}

func (b *banner) gap() { b.text.WriteByte('\n') }

// Banner describes the run that is about to start in the folder dir.
func Banner(p *plan.Plan, dir string) string {
	var b banner
	visible.Fprintf(&b.text, "xtts-host trains %s\n\n", p.Bundle.Manifest.Name)
	b.model(p)
	b.rows("data", dataLines(p))
	for i := range p.Data.Usage.Folders {
		b.row("data folder", "%s", &p.Data.Usage.Folders[i])
	}
	b.row("validation", "%s", validation(p))
	b.row("batches", "%s", batches(p))
	b.row("", "%s", p.Data.Usage.Fit(p.Bundle.Manifest.Features))
	b.gap()
	b.path(p)
	b.row("run folder", "%s", dir)
	if c := p.Config; c.Trace != "" {
		b.row("timeline", "%s: up to %s, for https://ui.perfetto.dev", c.Trace, units.Count(c.TraceSteps, "step"))
	}
	if c := p.Config; c.Metrics != "" {
		b.row("metrics", "http://%s/metrics, for Prometheus", c.Metrics)
	}
	b.gap()
	return b.text.String()
}

// model describes the model and its training settings.
func (b *banner) model(p *plan.Plan) {
	c, n := p.Config, p.Parameters()
	values := n.Trained.Values + n.Frozen.Values
	b.row("model", "%s parameters in %s", units.Thousands(values), p.Precision)
	b.row("trained", "%s of %s, %s of %s parameters", units.Thousands(n.Trained.Tensors),
		units.Count(n.Trained.Tensors+n.Frozen.Tensors, "tensor"), units.Thousands(n.Trained.Values),
		units.Thousands(values))
	for _, g := range n.Groups {
		b.row("group", "%s", groupText(g))
	}
	for _, own := range n.Players {
		b.row("player", "%s: %s of %s parameters trained", own.Player, units.Thousands(own.Trained.Values),
			units.Thousands(own.Trained.Values+own.Frozen.Values))
		for _, g := range own.Groups {
			b.row("group", "%s: %s", own.Player, groupText(g))
		}
	}
	memory := ""
	if n.CopiesBytes > 0 {
		memory = fmt.Sprintf("bf16 copies %s MiB, ", units.Mebibytes(float64(n.CopiesBytes)))
	}
	memory += fmt.Sprintf("gradients %s MiB, moments %s MiB", units.Mebibytes(float64(n.GradientsBytes)),
		units.Mebibytes(float64(n.MomentsBytes)))
	if n.AccumulatorBytes > 0 {
		memory += fmt.Sprintf(", accumulator %s MiB", units.Mebibytes(float64(n.AccumulatorBytes)))
	}
	b.row("memory", "%s", memory)
	if c.EMA > 0 {
		b.row("average", "of the trained weights, decay %g, evaluated and saved, %s MiB", c.EMA,
			units.Mebibytes(float64(n.AverageBytes)))
	}
	if n.StateBytes > 0 {
		b.row("state", "%s that training changes, evaluated and saved, %s MiB",
			units.Count(len(p.Bundle.Manifest.State), "tensor"), units.Mebibytes(float64(n.StateBytes)))
	}
	schedules := p.Schedules()
	for i, player := range p.Players {
		label, name := "optimizer", ""
		if i > 0 {
			label = ""
		}
		if player.Name != "" {
			name = player.Name + ": "
		}
		b.row(label, "%s%s, learning rate %g, %s", name, player.Optimizer.Name, player.Optimizer.LR,
			schedules[i].Until(p.Source().Total()))
	}
}

// path describes the path of the batches.
func (b *banner) path(p *plan.Plan) {
	c := p.Config
	b.rows("pipeline", way(p.Stages.Resolved.Summaries()))
	b.row("plugins", "%s%s", strings.Join(Plugins(p), ", "), p.ForRanks())
	b.rows("sandbox", confined(p))
	if c.Debug {
		b.row("", "no deadlines (--debug): a plugin that hangs is waited for; interrupt twice to end everything")
	}
	b.rows("devices", p.Placement.Lines(p.Decoders(), p.Threads()))
	each := ""
	if n := p.Fed(); n > 1 {
		each = fmt.Sprintf(" for each of %d ranks", n)
	}
	flags := "--buffer-size"
	if c.Adaptive {
		flags = "--adaptive, --buffer-size"
	}
	b.row("buffers", "%s%s (%s), %s (--slots)", Ring(p), each, flags, units.Count(p.Slots.Device, "device slot"))
	are, ready := "are", min(p.Ring.Prefetch, c.BufferSize)
	if ready == 1 {
		are = "is"
	}
	b.row("prefetch", "training starts when %s %s ready, or after %g s", units.Count(ready, "batch"), are,
		c.ModelStartDelay)
}

// confined says what confines the plugins, and which of them may do more than others.
func confined(p *plan.Plan) []string {
	mode := sandbox.Mode(p.Config.Sandbox)
	lines := sandbox.Describe(mode).Lines()
	for _, e := range p.Stages.Resolved.Plugins {
		var asks []string
		if e.Manifest.Network {
			asks = append(asks, "uses the network")
		}
		if len(e.Manifest.Folders) > 0 {
			asks = append(asks, "reads "+strings.Join(e.Manifest.Folders, ", "))
		}
		if len(asks) > 0 && mode != sandbox.Off {
			lines = append(lines, fmt.Sprintf("%s %s, by its plugin.json", e.Name(), strings.Join(asks, " and ")))
		}
	}
	var short []string
	for _, line := range lines {
		short = append(short, strings.Split(fold.Text(line, room), "\n")...)
	}
	return short
}

// room is what a line of the banner has beside its label, in a terminal of 80 columns.
const room = 80 - len("  pipeline     ")

// way lists what a batch goes through, in lines that fit into 80 columns with their label, unless one entry is longer.
func way(stages []string) (lines []string) {
	line := "decode"
	for _, s := range append(slices.Clone(stages), "transfer", "train") {
		if len(line)+len(" -> ")+len(s) > room {
			lines = append(lines, line)
			line = "-> " + s
			continue
		}
		line += " -> " + s
	}
	return append(lines, line)
}

// validation describes the data of evaluations, and when they run.
func validation(p *plan.Plan) string {
	val := p.Data.Val
	if val == nil {
		why := ""
		if p.Data.Unshared != "" {
			why = "; no share of the training list is held out: " + p.Data.Unshared
		}
		return "none (--val-data names it, or metadata_eval.csv or eval.jsonl is in a folder that --train-data names" +
			why + ")"
	}
	when := "every epoch"
	if n := p.Config.EvalEvery; n > 0 {
		when = "every " + units.Count(int(n), "step")
	}
	used := append([]string{p.Data.Usage.Validation.String()}, p.Data.Usage.Validation.Lines()...)
	text := fmt.Sprintf("%s, after %s", strings.Join(used, "; "), when)
	if p.Data.Share > 0 && p.Config.ValData == "" {
		text += fmt.Sprintf("; held out of the training list by --val-share %g (--val-share 0 trains on all of it)",
			p.Data.Share)
	}
	return text
}

// data says what is trained on, and what is left out.
func dataLines(p *plan.Plan) []string {
	ix := p.Data.Train.Index
	lines := append([]string{filepath.Join(ix.Dir, ix.List), Clips(p)}, p.Data.Usage.Train.RunLines()...)
	if len(p.Data.Usage.Lists) > 0 {
		lines = append(lines, p.Data.Usage.Lists[0].Lines()...)
	}
	if _, languages := ix.Numbered(p.Stages.Resolved.Dataset); languages != nil && !ix.NamesLanguages {
		lines = append(lines, dataset.NoLanguages(ix))
	}
	if rules := p.Config.Normalize; rules.On() {
		lines = append(lines, fmt.Sprintf("%s changed by --normalize %s", units.Count(ix.Normalized, "text"), &rules))
	}
	return lines
}

// Clips says how much is trained on.
func Clips(p *plan.Plan) string {
	return fmt.Sprintf("%s of %s", &p.Data.Usage.Train, units.Count(len(p.Data.Train.Index.Speakers), "speaker"))
}

// batches describes the length of the run.
func batches(p *plan.Plan) string {
	c, s := p.Config, p.Source()
	size := units.Count(c.BatchSize, "row")
	if c.Accumulate > 1 {
		size += fmt.Sprintf(" x %d accumulated", c.Accumulate)
	}
	if !p.World.Alone() {
		size += fmt.Sprintf(" x %d ranks = %d in a step", p.World.Size, p.World.BatchSize(c.BatchSize*c.Accumulate))
	}
	limit := fmt.Sprintf("--epochs %d", c.Epochs)
	if s.Total() == c.MaxSteps {
		limit = "--max-steps"
	}
	return fmt.Sprintf("%s, by length; %s per epoch, %s in total (%s)",
		size, units.Count(int(s.StepsPerEpoch()), "step"), units.Count(int(s.Total()), "step"), limit)
}

// Plugins names the plugins, the stages that they serve, and their processes.
func Plugins(p *plan.Plan) []string {
	workers := Setup(p).WorkersOf
	var out []string
	for i, e := range p.Stages.Resolved.Plugins {
		var stages []string
		for _, in := range p.Stages.Resolved.Instances {
			if in.Plugin == i {
				stages = append(stages, in.Name)
			}
		}
		out = append(out, fmt.Sprintf("%s %s (%s; %s)", e.Name(), e.Manifest.Version, strings.Join(stages, ", "),
			units.Count(workers[e.Name()], "process")))
	}
	return out
}

// groupText describes a parameter group.
func groupText(g report.ParameterGroup) string {
	var values []string
	if g.LRFactor != nil {
		values = append(values, fmt.Sprintf("learning rate x %g", *g.LRFactor))
	}
	if g.WeightDecay != nil {
		values = append(values, fmt.Sprintf("weight decay %g", *g.WeightDecay))
	}
	return fmt.Sprintf("%s, %s parameters: %s", units.Count(g.Tensors.Tensors, "tensor"), units.Thousands(g.Values),
		strings.Join(values, ", "))
}
