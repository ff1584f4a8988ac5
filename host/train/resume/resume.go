// Package resume decides whether a run may continue with settings that differ from its checkpoint, and how
// the run continues. docs/resume.md is the specification.
package resume

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Config is a run to resume.
type Config struct {
	// Folder is the run's folder, which holds the record of earlier changes.
	Folder     string
	Checkpoint *checkpoint.Checkpoint
	// Now names what changes numbers, as State.Hashes does for the checkpoint.
	Now map[string]string
	// Speakers and Languages are the names of the training data that the weights know by number.
	Speakers, Languages []string
	// Allow lists the settings that may change: --allow.
	Allow []string
	// Stored has the shapes of the bundle's weights and state by name, and Moments the tensors of the optimizer's state
	// that the run needs.
	Stored  map[string][]int
	Moments []string
	// Length is the number of steps of the run from where the checkpoint's state lets it continue.
	Length func() int64
}

// Decision says how a run continues. The zero value changes nothing.
type Decision struct {
	// Step is the checkpoint's, Changes are those that are made there.
	Step    int64
	Changes []Difference
	// History lists all changes of the run, the new ones last.
	History []report.Change
	// Unused are the entries of --allow that nothing needs.
	Unused []string
	// NewOptimizer says that the optimizer starts with an empty state.
	NewOptimizer bool

	notes []string
}

// Decide compares the checkpoint with the run that resumes from it. Differences that --allow names are accepted,
// and the checkpoint's state becomes that of the run. The error is a *RefusedError for others.
func Decide(c Config) (*Decision, error) {
	for _, name := range c.Allow {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	state := &c.Checkpoint.State
	history, err := ReadHistory(c.Folder)
	if err != nil {
		return nil, err
	}
	found := Differences(state.Hashes, c.Now)
	if state.Hashes["graph"] != c.Now["graph"] {
		found = append(found, parameters(c.Checkpoint.Weights, c.Stored)...)
	}
	found = append(found, renumbered("speakers", state.Speakers, c.Speakers)...)
	found = append(found, renumbered("languages", state.Languages, c.Languages)...)
	d := &Decision{Step: state.Step, Changes: found}
	var refused []Difference
	needed := map[string]bool{}
	for _, f := range found {
		name := f.setting()
		accepted := slices.ContainsFunc(history, func(h report.Change) bool { return h == f.at(state.Step) })
		needed[name] = true
		if settings[name].never != "" || !accepted && !slices.Contains(c.Allow, name) {
			refused = append(refused, f)
		}
	}
	if len(refused) > 0 {
		return nil, &RefusedError{
			Path: c.Checkpoint.Path, Refused: refused, Allowed: c.Allow, MissingConfig: missingConfig(c.Folder),
		}
	}
	d.apply(c, needed)
	d.stretch(c, history, needed)
	if len(d.Changes) > 0 {
		d.note(
			"from here on, a run whose settings never changed would give other bits; repeating the same changes at " +
				"the same steps gives these")
	}
	d.Unused = slices.DeleteFunc(slices.Clone(c.Allow), func(name string) bool { return needed[name] })
	d.History = merge(history, d, Values(c.Now))
	return d, nil
}

// checkName refuses a name that --allow does not know.
func checkName(name string) error {
	if s, ok := settings[name]; ok && s.never == "" {
		return nil
	} else if ok {
		return fmt.Errorf("--allow %s: that can never change in a run: %s", name, s.never)
	}
	known := allowable()
	advice := hint.DidYouMean(name, known)
	if advice == "" {
		advice = "settings that it does not name may change without it (docs/resume.md)"
	}
	return hint.Errorf(advice, "--allow %s: unknown; it may name %s", name, strings.Join(known, ", "))
}

// allowable lists what --allow may name.
func allowable() []string {
	names := slices.Sorted(maps.Keys(settings))
	return slices.DeleteFunc(names, func(name string) bool { return settings[name].never != "" })
}

// apply makes the state to continue from out of that of the checkpoint, and notes what that means.
func (d *Decision) apply(c Config, changed map[string]bool) {
	state := &c.Checkpoint.State
	if changed["data"] || reordered(state.Hashes["order"], c.Now["order"], changed) {
		if state.Batch > 0 {
			d.note("epoch %d begins again: its batches are others", state.Epoch+1)
		}
		state.Batch = 0
	}
	if changed["data"] && len(state.Quarantine) > 0 {
		d.note("%s that the run left out so far: tried again", units.Count(len(state.Quarantine), "clip"))
		state.Quarantine = nil
	}
	if changed["schedule"] || changed["warmup-steps"] {
		beginAgain(state)
		d.note("the learning rate follows the schedule as if the run had begun with it")
	}
	if (changed["graph"] || changed["best-by"]) && state.Best != nil {
		why := "they are compared by another measure now"
		if changed["graph"] {
			why = "their losses are another graph's"
		}
		d.note("the evaluations so far no longer count as best: %s", why)
		state.Best, state.EarlyStop = nil, nil
		state.Schedules(func(_ *schedule.Schedule, plateau *schedule.State) {
			if plateau != nil {
				plateau.Waiting = schedule.Waiting{}
			}
		})
	}
	missing := func(name string) bool { _, ok := c.Checkpoint.Moments.Tensor(name); return !ok }
	if (changed["freeze"] || changed["graph"]) && slices.ContainsFunc(c.Moments, missing) {
		d.note("the optimizer starts with an empty state: parameters that were frozen have none")
		state.OptimizerStep, d.NewOptimizer = 0, true
		for i := range state.Players {
			state.Players[i].OptimizerStep = 0
		}
	}
}

// stretch gives a schedule that ends with the run the run's length now, where --allow schedule asks for it.
func (d *Decision) stretch(c Config, history []report.Change, needed map[string]bool) {
	const name = "schedule/length"
	state := &c.Checkpoint.State
	was, is := int64(0), c.Length()
	state.Schedules(func(s *schedule.Schedule, _ *schedule.State) {
		if s.Ends() && s.TotalSteps != is {
			was = s.TotalSteps
		}
	})
	if was == 0 {
		return
	}
	change := Difference{name, strconv.FormatInt(was, 10), strconv.FormatInt(is, 10)}
	if !slices.Contains(c.Allow, "schedule") && !slices.Contains(history, change.at(state.Step)) {
		return
	}
	d.Changes, needed["schedule"] = append(d.Changes, change), true
	beginAgain(state)
	d.note("the learning rate follows the schedule as if the run had begun with that length")
}

// beginAgain forgets what is fixed of the schedules at the start of a run.
func beginAgain(state *checkpoint.State) {
	state.Schedules(func(s *schedule.Schedule, _ *schedule.State) { *s = schedule.Schedule{} })
}

// reordered reports whether the batches of an epoch are others. A checkpoint of an older program does not hold their
// order: there the settings that can change it decide.
func reordered(was, is string, changed map[string]bool) bool {
	if was != "" {
		return was != is
	}
	return slices.ContainsFunc([]string{"batch-size", "seed", "enable-static-shapes", "buckets", "augment", "graph"},
		func(name string) bool { return changed[name] })
}

func (d *Decision) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// Text returns what changes and what that means, in words, or "".
func (d *Decision) Text() string {
	var b strings.Builder
	label := "changed"
	line := func(text string) {
		fmt.Fprintf(&b, "%-12s %s\n", label, text)
		label = ""
	}
	for _, c := range d.Changes {
		line(c.String())
	}
	for _, n := range d.notes {
		line(n)
	}
	return b.String()
}
