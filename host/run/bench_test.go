package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// BenchmarkHop sends a batch of 16 x 500 x 80 f32 (2.56 MB) through a plugin process that makes one pass over it.
// hop-µs is the time of the call without the time in the stage, as the plugin measures it: what it costs that the stage
// is another process. The pass in this process is no measure of that: how fast its loop is depends on where the linker
// puts it.
func BenchmarkHop(b *testing.B) {
	b.Run("go", func(b *testing.B) { benchmarkHop(b, passPlugin(b, b.TempDir())) })
	b.Run("python", func(b *testing.B) {
		folder := b.TempDir()
		if err := os.CopyFS(filepath.Join(folder, "pass"), os.DirFS("testdata/pass")); err != nil {
			b.Fatal(err)
		}
		editFile(b, filepath.Join(folder, "pass", "plugin.json"),
			`"executable": {"linux_amd64": "pass", "linux_arm64": "pass"}`, `"argv": ["python3", "pass.py"]`)
		python(b)
		benchmarkHop(b, folder)
	})
}

func benchmarkHop(b *testing.B, folder string) {
	entries, err := catalog.Scan(folder)
	if err != nil {
		b.Fatal(err)
	}
	const rows = 16
	layout := ring.NewLayout([]ring.Tensor{{Name: "x", DType: manifest.F32, Shape: []int{rows, 500, 80}}}, nil)
	r, err := ring.Create(4, layout.Size)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	pool, err := supervise.NewPool(b.Context(),
		supervise.Config{Plugin: entries[0], Ring: r, Configure: &stagepb.ConfigureRequest{
			FeaturesJson: "{}",
			Instances: []*stagepb.Instance{{
				Name: "pass", Stage: "pass", Inputs: map[string]string{"x": "x"}, Outputs: map[string]string{"x": "x"},
			}},
			Layouts: []*stagepb.Layout{
				{Tensors: []*stagepb.Tensor{{Name: "x", Dtype: "f32", Shape: []uint64{rows, 500, 80}}}},
			},
		}})
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()

	request := supervise.Request{RowKeys: make([]byte, rows*stage.KeySize)}
	for i := range rows {
		id := fmt.Sprintf("speaker/clip-%04d", i)
		request.ClipIDs = append(request.ClipIDs, id)
		request.Sources = append(request.Sources, &stagepb.Source{Clip: id, Start: 1000, End: 70000})
	}
	var whole, hop []float64
	micro := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	for b.Loop() {
		began := time.Now()
		result, err := pool.Call(b.Context(), request)
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		whole, hop = append(whole, micro(took)), append(hop, micro(took-result.Busy))
	}
	b.ReportMetric(quantile(whole, 0.5), "call-µs")
	b.ReportMetric(quantile(hop, 0.5), "hop-µs")
	b.ReportMetric(quantile(hop, 0.9), "hop-p90-µs")
}

// passPlugin builds the plugin "pass" into a folder of plugins, which it returns.
func passPlugin(t testing.TB, folder string) string {
	t.Helper()
	if err := catalogtest.Build(filepath.Join(folder, "pass", "pass"), "testdata/pass"); err != nil {
		t.Fatal(err)
	}
	return folder
}

func quantile(x []float64, q float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[int(q*float64(len(x)-1))]
}

// BenchmarkHostTime trains pico and reports what a step costs outside the graphs: waiting for a batch, accounting,
// files.
func BenchmarkHostTime(b *testing.B) {
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "run")
		if err := runFlags(
			b, console.Console{}, "--plugins", plugins, "--graph", pico, "--batch-size", "4", "--run-dir", dir,
			"--max-steps", "400", "--epochs", "1000", "--eval-every", "1000", "--checkpoint-every", "0", "--log-every",
			"0", "--threads", "1",
		); err != nil {
			b.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
		if err != nil {
			b.Fatal(err)
		}
		var r struct {
			Phases map[string]float64 `json:"phases_ms"`
			Stall  float64            `json:"input_stall_ratio"`
		}
		if err := json.Unmarshal(data, &r); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(1000*(r.Phases["wait"]+r.Phases["other"]), "host-µs/step")
		b.ReportMetric(1000*(r.Phases["train"]+r.Phases["optimizer"]), "graphs-µs/step")
		b.ReportMetric(100*r.Stall, "stall-%")
	}
}
