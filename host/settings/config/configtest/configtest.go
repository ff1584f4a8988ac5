// Package configtest makes settings for tests.
package configtest

import (
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config"
)

// Parse reads a command line, without the environment.
func Parse(t testing.TB, args ...string) *config.Set {
	t.Helper()
	set := config.New()
	if err := set.Parse(args, nil); err != nil {
		t.Fatal(err)
	}
	return set
}
