package preflight

import (
	"context"
	"fmt"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
)

// Check is one check.
type Check struct {
	// Name is unique among all checks.
	Name string
	// Needs names earlier checks. If one of them has not passed, this check is skipped.
	Needs []string
	// Try returns a short result, or an error. The error's hint is the fix; without one it is Remedy.
	Try    func(ctx context.Context) (detail string, err error)
	Remedy string
}

// Outcome is the result of a check.
type Outcome struct {
	Name string `json:"name"`
	// OK is nil if the check was skipped.
	OK     *bool   `json:"ok"`
	Detail string  `json:"detail"`        // the result, the error, or why it was skipped
	Hint   string  `json:"hint,omitzero"` // the fix
	Ms     float64 `json:"ms"`            // how long it took

	Fault error `json:"-"` // the error
}

// Passed reports whether the check ran without an error.
func (o *Outcome) Passed() bool { return o.OK != nil && *o.OK }

// Blame has, for each check that has not passed, the one that failed.
type Blame map[string]string

// Outcome runs the check if all checks that it depends on have passed, and enters it in blame if it does not pass.
func (c *Check) Outcome(ctx context.Context, blame Blame) Outcome {
	for _, need := range c.Needs {
		if failed, ok := blame[need]; ok {
			blame[c.Name] = failed
			return Outcome{Name: c.Name, Detail: fmt.Sprintf("not tried: %q failed", failed)}
		}
	}
	began := time.Now()
	detail, fault := c.Try(ctx)
	ok := fault == nil
	o := Outcome{
		Name: c.Name, OK: &ok, Detail: detail, Fault: fault, Ms: float64(time.Since(began).Microseconds()) / 1000,
	}
	if !ok {
		blame[c.Name] = c.Name
		o.Detail, o.Hint = exit.Text(fault), exit.Hint(fault)
		if o.Hint == "" {
			o.Hint = c.Remedy
		}
	}
	return o
}
