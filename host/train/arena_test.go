package train

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestShrinkChangesNoBit shrinks arenas between two steps, once: the run of each session that comes next does it.
func TestShrinkChangesNoBit(t *testing.T) {
	d, _ := fakeDevice(t)
	var want []byte
	for _, shrinking := range []bool{false, true} {
		m, g, layouts := picoOn(t, d)
		o := newOptimizer(t, m, manifest.Optimizer{Name: "sgd", Momentum: 0.9}, false)
		g.fill(t, g.Steps[0], &layouts[0], input(t, m))
		for i := range 3 {
			if i == 1 && shrinking {
				if err := errors.Join(m.Shrink(), o.Shrink()); err != nil {
					t.Fatal(err)
				}
			}
			trainOn(t, m, 0, 1)
			if _, updated := step(t, m, o, 0.01); !updated {
				t.Fatalf("step %d: no update", i)
			}
		}
		if slices.Contains(m.unshrunk, m.sessions[0]) || len(o.unshrunk) > 0 {
			t.Error("a session has run and is still to shrink")
		}
		if _, err := m.Evaluate(0, 0); err != nil || len(m.unshrunk) > 0 {
			t.Errorf("evaluation: %v, %d sessions are still to shrink", err, len(m.unshrunk))
		}
		if err := m.Pull(); err != nil {
			t.Fatal(err)
		}
		if !shrinking {
			want = bytes.Clone(m.players[0].weights.host)
		} else if !bytes.Equal(m.players[0].weights.host, want) {
			t.Error("other weights than without")
		}
		if n, err := m.ArenaBytes(); n != 0 || err != nil {
			t.Errorf("arenas of %d bytes on a GPU that none is on, %v", n, err)
		}
	}
}

// TestCapturedGraphsKeepArenas: captured graphs would write to memory that is no longer theirs.
func TestCapturedGraphsKeepArenas(t *testing.T) {
	d, _ := fakeDevice(t)
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d, CUDAGraphs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if p, err := m.Prepare(); err != nil || p.Graphs == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := m.Shrink(); !errors.Is(err, ErrCaptured) || len(m.unshrunk) > 0 {
		t.Errorf("%v, %d sessions are to shrink", err, len(m.unshrunk))
	}
}
