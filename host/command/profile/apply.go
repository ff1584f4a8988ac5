package profile

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// trialSeconds is how long a trial measures at least, at the speed of the first run: on a GPU, 100 steps take a second,
// in which the ring, which has a few batches at first, is still filling.
const trialSeconds = 5

// apply tries changes and writes the settings of the fastest run.
func (p *profiler) apply(ctx context.Context, r *Result) (*Applied, error) {
	p.measure(max(p.Steps, int(trialSeconds*r.report.StepsPerSecond)))
	p.say("\ntrying changes for up to %s\n", units.Duration(p.Budget))
	s := search{
		try: func(ctx context.Context, changes []bottleneck.Setting) (*report.Report, error) {
			return p.train(ctx, batch.NoCheckpoint, changes)
		},
		now: time.Now, budget: p.Budget, rows: p.set.BatchSize, changeBatch: p.ChangeBatch, placements: p.placements(),
		tell: func(t *Trial) { p.say("%s\n", t) },
	}
	first := time.Duration(r.report.WallS * float64(time.Second))
	a, err := s.run(ctx, r.report, first)
	if err != nil {
		return a, err
	}
	p.say("  the search ends: %s\n", a.Why)
	if !p.ChangeBatch {
		p.say("  --batch-size was not changed, as it changes what is trained: --change-batch allows it\n")
	}
	if len(p.placements()) == 0 {
		p.say("  no other place of the stages was tried: there is no GPU for them\n")
	}
	if len(a.Changes) == 0 {
		p.say("no change made the run faster; %s is not written\n", p.Apply)
		return a, nil
	}
	if err := p.write(a); err != nil {
		return a, err
	}
	a.File = p.Apply
	p.say("%s: %.1f %% more rows/s than before\n", key(a.Changes), 100*a.Gain)
	visible.Fprintf(p.console.Out, "use it: %s\n", hint.Command("--config "+hint.Path(p.Apply))) // whole, to be copied
	return a, nil
}

// write writes the given settings with the changes.
func (p *profiler) write(a *Applied) error {
	set := p.given.Copy()
	set.TakeBundle(p.bundle.Manifest)
	var changes []config.Change
	for _, c := range a.Changes {
		if err := config.Put(set, c.Name, c.Value); err != nil {
			return err
		}
		value := c.Value
		switch c.Name {
		case "plugin-workers": // of all plugins
			text, err := json.Marshal(set.PluginWorkers)
			if err != nil {
				return err
			}
			value = string(text)
		case "data-gpu", "model-gpu":
			value = fmt.Sprintf("%q", c.Value)
		}
		changes = append(changes, config.Change{Name: c.Name, Value: value, Origin: "profile"})
	}
	text := fmt.Sprintf("# found by profile: %.1f rows/s instead of %.1f, with %s\n", a.fastest().RowsPerSecond,
		a.Trials[0].RowsPerSecond, visible.Text(key(a.Changes))) + set.RunYAML(changes...)
	if err := disk.Replace(p.Apply, []byte(text)); err != nil {
		return fmt.Errorf("--apply: %w", err)
	}
	return nil
}

// fastest returns the trial with the most rows per second. It may make fewer steps per second than an earlier one, if
// its batches are larger.
func (a *Applied) fastest() (best *Trial) {
	for i := range a.Trials {
		if a.Trials[i].Kept { // only if it was faster than those before it
			best = &a.Trials[i]
		}
	}
	return best
}

// placements returns the settings of the other places that the stages could have on this machine.
func (p *profiler) placements() (list [][]bottleneck.Setting) {
	if p.place.Model.OnCPU() || p.gpus() == 0 {
		return nil
	}
	at := func(data, model string) {
		list = append(list, []bottleneck.Setting{{Name: "data-gpu", Value: data}, {Name: "model-gpu", Value: model}})
	}
	model := p.place.Model.GPU.UUID
	if p.gpus() > 1 && (p.place.Data.OnCPU() || p.place.Shared()) {
		at(place.Auto, place.Auto) // a GPU for each
	}
	if !p.place.Shared() {
		at(model, model)
	}
	if !p.place.Data.OnCPU() {
		at(place.CPU, model)
	}
	return list
}

// String is the line of a trial.
func (t *Trial) String() string {
	line := fmt.Sprintf("  %s: ", key(t.Changes))
	if t.Failed != "" {
		return line + "not possible: " + t.Failed
	}
	line += units.Rate(t.RowsPerSecond) + " rows/s"
	if t.Predicted != nil {
		line += fmt.Sprintf(" (predicted %s)", units.Rate(*t.Predicted))
	}
	if !t.Kept {
		line += ", not faster"
	}
	return line + fmt.Sprintf(", %s", units.Duration(time.Duration(t.S*float64(time.Second))))
}
