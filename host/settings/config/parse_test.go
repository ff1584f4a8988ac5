package config

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestDuration: a time without its unit is answered with one that has it.
func TestDuration(t *testing.T) {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Duration("budget", 0, "")
	err := f.Parse([]string{"--budget", "5"})
	if got, want := FlagError(f, err).Error(), "--budget 5: not a time with its unit, such as 90s or 5m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
