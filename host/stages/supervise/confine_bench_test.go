package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// BenchmarkSandbox compares confined processes with others, in turns: calls of a stage that reads and writes 4 KiB, and
// starts of the test's own program and of a plugin in Python. It reports the median of the ratio of each turn with the
// quartiles, and the ratio of the fastest tenth, which other load on the machine disturbs least.
//
//	go test ./host/stages/supervise -run '^$' -bench Sandbox -benchtime 200x
func BenchmarkSandbox(b *testing.B) {
	tmp := b.TempDir()
	b.Setenv("XTTS_PLUGIN_TEST_PROGRAM", os.Args[0])
	cfg := fakeConfig("ok", tmp, newRing(b))
	b.Run("call", func(b *testing.B) {
		pools := map[sandbox.Mode]*Pool{}
		for _, mode := range []sandbox.Mode{sandbox.Off, sandbox.Auto} {
			pools[mode] = openMode(b, cfg, mode)
			defer pools[mode].Close()
		}
		compare(b, func(mode sandbox.Mode) {
			for range 100 {
				if _, err := pools[mode].Call(b.Context(), request(0)); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	starts := func(cfg Config) func(b *testing.B) {
		return func(b *testing.B) { compare(b, func(mode sandbox.Mode) { openMode(b, cfg, mode).Close() }) }
	}
	b.Run("start/go", starts(cfg))
	python, err := filepath.Abs("../../../.cache/venv-plugin/bin")
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("PATH", python+":"+os.Getenv("PATH"))
	entry, err := catalog.Open("../../../plugins/testdata/python/gain")
	if err != nil {
		b.Fatal(err)
	}
	cfg.Plugin, cfg.Configure = entry, &stagepb.ConfigureRequest{Layouts: []*stagepb.Layout{{}}}
	b.Run("start/python", starts(cfg))
}

func openMode(b *testing.B, cfg Config, mode sandbox.Mode) *Pool {
	b.Helper()
	cfg.Sandbox = mode
	p, err := NewPool(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// compare does something in both modes, b.N times each, and changes which is first.
func compare(b *testing.B, do func(sandbox.Mode)) {
	var ratios, on, off []float64
	for i := range b.N {
		took := map[sandbox.Mode]time.Duration{}
		order := []sandbox.Mode{sandbox.Off, sandbox.Auto}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, mode := range order {
			began := time.Now()
			do(mode)
			took[mode] = time.Since(began)
		}
		ratios = append(ratios, float64(took[sandbox.Auto])/float64(took[sandbox.Off]))
		off = append(off, float64(took[sandbox.Off])/float64(time.Millisecond))
		on = append(on, float64(took[sandbox.Auto])/float64(time.Millisecond))
	}
	for _, all := range [][]float64{ratios, on, off} {
		slices.Sort(all)
	}
	at := func(all []float64, part float64) float64 { return all[int(part*float64(len(all)-1))] }
	b.ReportMetric(at(ratios, 0.5), "ratio")
	b.Logf("%d turns: ratio of the medians %.3f, median of the ratios %.3f (quartiles %.3f to %.3f); of the fastest "+
		"tenth %.3f: %.2f ms, not confined %.2f ms", b.N, at(on, 0.5)/at(off, 0.5), at(ratios, 0.5),
		at(ratios, 0.25), at(ratios, 0.75), at(on, 0.1)/at(off, 0.1), at(on, 0.1), at(off, 0.1))
}
