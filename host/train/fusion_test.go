package train

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestFusion: the fused training graph gives the losses of the graph as exported, a wrong kernel is found, and then only its region runs
// as exported.
func TestFusion(t *testing.T) {
	b := open(t, pico)
	layouts, _ := shaped(t, b, 3, []goldenBatch{
		{Sizes: manifest.Bucket{"T_text": 3, "T_mel": 5, "T_ref_mel": 4}}, {Sizes: manifest.Bucket{"T_text": 4, "T_mel": 7, "T_ref_mel": 6}},
	})
	compiler := fusedtest.NewCompiler(t)
	compiler.Change = func(program string) string {
		if strings.Contains(program, "x3 = x") {
			return strings.Replace(program, " * x", " + x", 1)
		}
		return program
	}
	open := func(c ModelConfig) *Model {
		c.Bundle, c.Arena, c.Layouts, c.Slots, c.Threads = b, arenaOf(b), layouts, 1, 1
		m, err := NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	plain := open(ModelConfig{})
	for _, faults := range []int{0, 2} {
		compiler.Faults = faults
		d, _ := fakeDevice(t)
		checked := 0
		m := open(ModelConfig{Device: d, Fuse: compiler, CUDAGraphs: true, Capturable: func(fused []byte) error {
			checked += min(1, len(fused))
			return nil
		}})
		p, err := m.Prepare()
		if err != nil || p.Fault != nil {
			t.Fatal(p.Fault, err)
		}
		f := p.Fusion
		t.Logf("%d kernels; left %v; wrong %q; distances %.2g; %+v", f.Kernels, f.Left, f.Wrong, f.Distances, f.Times)
		if p.Graphs != len(layouts) || checked != len(layouts)+faults {
			t.Errorf("%d CUDA graphs, %d fused graphs checked", p.Graphs, checked)
		}
		if f.Kernels < 50 || len(f.Wrong) != faults {
			t.Errorf("%d kernels; %d faults were planted, found %q", f.Kernels, faults, f.Wrong)
		}
		for bucket := range layouts {
			want, err := plain.Try(bucket)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Try(bucket)
			if d := got.Loss/want.Loss - 1; err != nil || !(math.Abs(d) < 1e-5) {
				t.Errorf("bucket %d: loss %v, want %v; %v", bucket, got.Loss, want.Loss, err)
			}
		}
	}
}

// refusing compiles nothing.
type refusing struct{}

func (refusing) Compile([]string) (fused.Programs, error) { return nil, errors.New("no space left") }

// TestUnfused: a graph that cannot be fused runs as exported, also in CUDA graphs.
func TestUnfused(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	uncapturable := errors.New("a table from the host")
	for _, want := range []error{nil, uncapturable} {
		d, _ := fakeDevice(t)
		m, err := NewModel(ModelConfig{Bundle: b, Arena: arenaOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d, Fuse: refusing{}, CUDAGraphs: true,
			Capturable: func(fused []byte) error {
				if fused != nil {
					t.Error("a fused graph is to be captured")
				}
				return want
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		p, err := m.Prepare()
		if err != nil || p.Fusion != nil || p.Unfused == nil || p.Unfused.Error() != "no space left" || p.Fault != want || (p.Graphs == 1) != (want == nil) {
			t.Errorf("%+v, %v", p, err)
		}
		if r, err := m.Try(0); err != nil || !(r.Loss > 0) {
			t.Error(r, err)
		}
	}
}
