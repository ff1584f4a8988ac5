package train

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
)

// TestFusion: the fused training graph gives the losses of the graph as exported, a wrong kernel is found, and then only its region runs
// as exported.
func TestFusion(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, index := shaped(t, b, g.Rows, g.Steps[:4])
	for name, c := range map[string]struct {
		wrong int // planted faults
		after int // wrong kernels that remain after the first ones
	}{"right": {}, "one wrong kernel": {wrong: 1}, "two wrong kernels": {wrong: 2}} {
		t.Run(name, func(t *testing.T) {
			compiler := fusedtest.NewCompiler(t)
			planted := 0
			compiler.Change = func(program string) string {
				if planted < c.wrong && strings.Contains(program, "x3 = x") && strings.Contains(program, " * x") {
					planted++
					return strings.Replace(program, " * x", " + x", 1)
				}
				return program
			}
			d, _ := fakeDevice(t)
			m, err := NewModel(ModelConfig{Bundle: b, Arena: arenaOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d, Fuse: compiler, CUDAGraphs: true})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			p, err := m.Prepare()
			if err != nil || p.Fault != nil {
				t.Fatal(p.Fault, err)
			}
			f := p.Fusion
			t.Logf("%d kernels; left %v; wrong %v", f.Kernels, f.Left, f.Wrong)
			if planted != c.wrong || (len(f.Wrong) > 0) != (c.wrong > 0) {
				t.Errorf("%d faults were planted, found %q", planted, f.Wrong)
			}
			for i, want := range g.Steps[:4] {
				bucket := index[want.shape()]
				g.fill(t, want, &layouts[bucket], input(t, m))
				r := trainOn(t, m, bucket, g.Seed)
				if d := r.Loss/want.Loss - 1; !(d < 1e-3 && d > -1e-3) && i == 0 {
					t.Errorf("loss %v, want %v", r.Loss, want.Loss)
				}
			}
		})
	}
}
