package runlog

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// TestPluginWarnings: a person sees the first lines of each plugin, of each kind, and how many more there are. Those of
// the host are all shown, also about a plugin, and so are all without a log.jsonl.
func TestPluginWarnings(t *testing.T) {
	var shown []string
	show := func(w *event.Warning) { shown = append(shown, w.Text) }
	log := New(show)
	host := log.Logger
	for process := range 2 { // each has a logger of its own
		noisy := host.With("plugin", "noisy", "worker", process)
		for i := range 1900 {
			noisy.Warn(fmt.Sprint("w", i))
		}
		noisy.Error("e")
	}
	host.With("plugin", "quiet").Warn("q")
	for i := range 7 {
		host.Warn(fmt.Sprint("h", i))
	}
	want := []string{"w0", "w1", "w2", "w3", "w4", "e", "e", "q", "h0", "h1", "h2", "h3", "h4", "h5", "h6"}
	if !slices.Equal(shown, want) {
		t.Errorf("%q, want %q", shown, want)
	}
	if got := log.Unshown(); !slices.Equal(got, []string{"plugin noisy: 3,795 more warnings in log.jsonl"}) {
		t.Errorf("%q", got)
	}
	shown = nil
	alone := slog.New(NewWarnings(show)).With("plugin", "noisy")
	for i := range 7 {
		alone.Error(fmt.Sprint("e", i))
	}
	if want := []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6"}; !slices.Equal(shown, want) {
		t.Errorf("without log.jsonl %q, want %q", shown, want)
	}
}
