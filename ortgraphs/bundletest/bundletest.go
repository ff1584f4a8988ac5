// Package bundletest makes the variants of bundles of package variant for tests.
package bundletest

import (
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/variant"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The names of what Stateful and WithPlayers make.
const (
	StateMean  = variant.StateMean
	StateCount = variant.StateCount
	StateOf    = variant.StateOf
	First      = variant.First
	Second     = variant.Second
)

// Rewrite copies a bundle, changed.
func Rewrite(t testing.TB, dir string, change func(dir string, m *manifest.Bundle)) *ortgraphs.Bundle {
	t.Helper()
	return with(t, dir, func(dir string, m *manifest.Bundle) error {
		change(dir, m)
		return nil
	})
}

// WithoutEval copies a bundle without its eval graph.
func WithoutEval(t testing.TB, dir string) *ortgraphs.Bundle {
	t.Helper()
	return with(t, dir, variant.WithoutEval)
}

// Mixed copies a bundle with a bf16 graph that the CPU can run.
func Mixed(t testing.TB, dir string, wide ...string) *ortgraphs.Bundle {
	t.Helper()
	return with(t, dir, variant.Mixed(wide...))
}

// WithPlayers copies a bundle with two players.
func WithPlayers(
	t testing.TB, dir string, first func(name string) bool, change func(*onnxpb.GraphProto),
) *ortgraphs.Bundle {
	t.Helper()
	return with(t, dir, variant.Players(first, change))
}

// Stateful copies pico with state.
func Stateful(t testing.TB, dir string) *ortgraphs.Bundle {
	t.Helper()
	return with(t, dir, variant.State)
}

// Frozen copies pico with an inference graph, which the stage conditioning runs.
func Frozen(t testing.TB, dir string) *ortgraphs.Bundle {
	t.Helper()
	return with(t, dir, variant.Frozen)
}

func with(t testing.TB, dir string, change variant.Change) *ortgraphs.Bundle {
	t.Helper()
	b, err := variant.Rewrite(dir, filepath.Join(t.TempDir(), "bundle"), change)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// WithoutDropout copies a bundle whose training drops nothing.
func WithoutDropout(t testing.TB, dir string) *ortgraphs.Bundle {
	t.Helper()
	return with(t, dir, variant.WithoutDropout)
}
