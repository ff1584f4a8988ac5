package plugintest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Config says what to test.
type Config struct {
	Plugin     catalog.Entry // startable
	Bundle     *ortgraphs.Bundle
	Stage      string            // the only one to test, or empty
	Values     map[string]any    // of the configuration: each goes to the stages that have a key of that name
	Data       map[string]string // data folders by NAME or STAGE.NAME
	ORTLibrary string
	Sandbox    sandbox.Mode
	Log        *slog.Logger
	// Patience is how long a process may take to end (0: 10 s), Deadline how long for anything else (0: 30 s).
	Patience, Deadline time.Duration
}

// State is the outcome of a check.
type State string

// The states of a check.
const (
	OK      State = "ok"
	Failed  State = "failed"
	Skipped State = "skipped"
)

// Check is a rule with its outcome.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Why   string `json:"why,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Stderr has the last lines that the process wrote to its standard error, if it ended.
	Stderr []string `json:"stderr,omitempty"`
	// SameAs is the first check that failed for the same reason.
	SameAs string `json:"same_as,omitempty"`
}

// Stage is what was found out about a stage.
type Stage struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Checks []Check `json:"checks"`
	// MillisecondsPerClip is the median time for a clip of ClipSeconds; both are 0 if no batch was finished. PeakMemory
	// is that of one process, in bytes.
	MillisecondsPerClip float64 `json:"milliseconds_per_clip"`
	ClipSeconds         float64 `json:"clip_seconds"`
	PeakMemory          int64   `json:"peak_memory"`
}

// Result is what was found out about a plugin. As JSON it is part of the output of `xtts-host plugins test --json`.
type Result struct {
	Plugin  string  `json:"plugin"`
	Version string  `json:"version"`
	Folder  string  `json:"folder"`
	Stages  []Stage `json:"stages"`
}

// Run tests every stage of a plugin. The error is about the test itself.
func Run(ctx context.Context, c Config) (*Result, error) {
	m := c.Plugin.Manifest
	c.Patience, c.Deadline = cmp.Or(c.Patience, 10*time.Second), cmp.Or(c.Deadline, 30*time.Second)
	r := &Result{Plugin: m.ID, Version: m.Version, Folder: c.Plugin.Dir, Stages: []Stage{}}
	if err := known(c.Values, m.Stages); err != nil {
		return nil, err
	}
	if err := knownData(c.Data, m.Stages); err != nil {
		return nil, err
	}
	for _, s := range m.Stages {
		if c.Stage != "" && s.Name != c.Stage {
			continue
		}
		found, err := testStage(ctx, &c, s)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", s.Name, err)
		}
		r.Stages = append(r.Stages, *found)
	}
	if len(r.Stages) == 0 {
		return nil, fmt.Errorf("the plugin has no stage %q", c.Stage)
	}
	return r, nil
}

// known refuses a value that no stage takes.
func known(values map[string]any, stages []manifest.Stage) error {
	for key := range values {
		if !slices.ContainsFunc(stages, func(s manifest.Stage) bool { return has(s, key) }) {
			return fmt.Errorf("no stage of the plugin has the configuration key %q", key)
		}
	}
	return nil
}

// has reports whether the stage's configuration has a key.
func has(s manifest.Stage, key string) bool {
	properties, _ := s.Config["properties"].(map[string]any)
	_, ok := properties[key]
	return ok
}

// testStage makes all checks of a stage.
func testStage(ctx context.Context, c *Config, s manifest.Stage) (*Stage, error) {
	result := &Stage{Name: s.Name, Kind: s.Kind}
	t, err := newSubject(c, s)
	if err != nil {
		return nil, err
	}
	defer t.end()
	if err := t.giveData(ctx); err != nil {
		return nil, err
	}
	started := true
	first := map[string]string{} // the check that has failed, by its reason
	for _, k := range checks {
		done := Check{Name: k.name, State: OK}
		switch err := t.try(ctx, k, started); {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, new(skipped)):
			done.State, done.Why = Skipped, err.Error()
		case err != nil:
			done.State, done.Why, done.Hint = Failed, reason(err), advice(k, err)
			if done.SameAs = first[done.Why]; done.SameAs == "" {
				first[done.Why] = k.name
				if ended, ok := errors.AsType[*supervise.PluginError](err); ok {
					done.Stderr = ended.LastLines()
				}
			}
			started = started && k.name != checks[0].name
		}
		result.Checks = append(result.Checks, done)
	}
	result.MillisecondsPerClip, result.ClipSeconds, result.PeakMemory = t.figures()
	return result, nil
}

// advice is the hint for a failed check.
func advice(k check, err error) string {
	ended, ok := errors.AsType[*supervise.PluginError](err)
	switch {
	case errors.Is(err, supervise.ErrFailed): // the stage itself says so, whatever the check is about
		return hint.Of(err)
	case ok && ended.Exit != "" && !ended.Kicked && !ended.Violated: // so does the process
		return cmp.Or(hint.Of(err), k.hint)
	}
	return cmp.Or(k.hint, hint.Of(err))
}

// unstarted is why all checks but the first are left out.
const unstarted = "it does not start"

// skipped says why a check does not apply.
type skipped string

func (s skipped) Error() string { return string(s) }

// try makes one check.
func (t *subject) try(ctx context.Context, k check, started bool) error {
	switch {
	case t.stage.GPU == manifest.GPURequired:
		return skipped("the stage needs a GPU")
	case !started:
		return skipped(unstarted)
	case k.bits && !t.stage.Deterministic:
		return skipped("the stage is not declared deterministic")
	case k.bits && t.changing:
		return skipped(`not tried: "same batch, same bits" failed`)
	}
	err := k.run(ctx, t)
	return cmp.Or(err, t.restarted()) // no call need have been lost
}

// reason is one line about an error.
func reason(err error) string {
	text := err.Error()
	if p, ok := errors.AsType[*supervise.PluginError](err); ok {
		text = p.Err.Error()
	}
	text, _, _ = strings.Cut(text, "\n")
	for _, prefix := range []string{"batch must be rebuilt: ", supervise.ErrViolation.Error() + ": "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// Failed counts the failed checks.
func (r *Result) Failed() int {
	n := 0
	for _, s := range r.Stages {
		for _, c := range s.Checks {
			if c.State == Failed {
				n++
			}
		}
	}
	return n
}
