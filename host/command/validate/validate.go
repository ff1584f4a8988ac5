package validate

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/xtts-host/xtts-host/host/command/preflight"
)

// Section is a list of checks with a title.
type Section struct {
	Title  string
	Checks []preflight.Check
}

// Report is the result of Try. As JSON it is the output of `xtts-host validate --json`.
type Report struct {
	Version int `json:"version"` // of this format: 1
	// Works is true when every check has passed.
	Works    bool     `json:"works"`
	Sections []Result `json:"sections"`

	fault error // the error of the first failed check
}

// Result is the result of a section.
type Result struct {
	Title  string              `json:"title"`
	Checks []preflight.Outcome `json:"checks"`
}

// Try runs the checks in order, writes a line after each, and the verdict at the end. It returns early only if ctx
// ends, with its cause, or if out cannot be written.
func Try(ctx context.Context, sections []Section, out io.Writer) (*Report, error) {
	r := &Report{Version: 1, Works: true}
	blame := preflight.Blame{}
	for i, s := range sections {
		if _, err := fmt.Fprintf(out, "%d %s\n", i+1, s.Title); err != nil {
			return r, err
		}
		r.Sections = append(r.Sections, Result{Title: s.Title, Checks: []preflight.Outcome{}})
		for _, c := range s.Checks {
			o := c.Outcome(ctx, blame)
			if ctx.Err() != nil { // whatever the check returned, this is the cause
				return r, context.Cause(ctx)
			}
			r.Works = r.Works && o.Passed()
			if r.fault == nil {
				r.fault = o.Fault
			}
			list := &r.Sections[i].Checks
			*list = append(*list, o)
			if _, err := io.WriteString(out, line(&o)); err != nil {
				return r, err
			}
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", r.Verdict())
	return r, err
}

// Err returns the error of the first check that failed, or nil.
func (r *Report) Err() error { return r.fault }

// Count returns the numbers of checks that passed, failed, and were skipped.
func (r *Report) Count() (passed, failed, untried int) {
	for _, s := range r.Sections {
		for i := range s.Checks {
			switch o := &s.Checks[i]; {
			case o.OK == nil:
				untried++
			case *o.OK:
				passed++
			default:
				failed++
			}
		}
	}
	return passed, failed, untried
}

// Verdict is the last line.
func (r *Report) Verdict() string {
	passed, failed, untried := r.Count()
	if r.Works {
		return fmt.Sprintf("✓ all %d checks passed: training can begin with these settings", passed)
	}
	return fmt.Sprintf("✗ %d of %d checks failed, %d not tried: training cannot work with these settings", failed,
		passed+failed+untried, untried)
}

// line formats a check. Further lines are indented below the first.
func line(o *preflight.Outcome) string {
	const indent = 26 // of the detail
	mark := "-"
	if o.OK != nil {
		mark = map[bool]string{true: "✓", false: "✗"}[*o.OK]
	}
	detail := strings.ReplaceAll(o.Detail, "\n", "\n"+strings.Repeat(" ", indent))
	text := fmt.Sprintf("  %s %-*s  %s", mark, indent-6, o.Name, detail)
	switch {
	case o.Ms >= 1000:
		text += fmt.Sprintf(" (%.1f s)", o.Ms/1000)
	case o.Ms >= 10:
		text += fmt.Sprintf(" (%.0f ms)", o.Ms)
	}
	if o.Hint != "" {
		text += fmt.Sprintf("\n%*shint: %s", indent, "", o.Hint)
	}
	return text + "\n"
}
