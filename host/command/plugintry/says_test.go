package plugintry

import (
	"errors"
	"strings"
	"testing"
)

// TestSays: what a plugin prints and logs is shown after its name, but not what is for debugging.
func TestSays(t *testing.T) {
	var out strings.Builder
	log := Says(&out).With("plugin", "mix", "worker", 0)
	log.Info("hello\x1b[2J")
	log.Debug("not this")
	log.Warn("plugin mix: too loud", "instance", "a")
	log.Error("plugin mix: it fails", "error", errors.New("x"), "stack", "at a\nat b\n")
	Says(&out).Warn("plugin mix is restarted")
	const want = `mix: hello\x1b[2J
mix: warning: too loud instance=a
mix: error: it fails error=x
mix: at a
mix: at b
warning: plugin mix is restarted
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
}
