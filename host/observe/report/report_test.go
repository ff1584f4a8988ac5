package report

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		write(t, path, got)
	}
	if want := read(t, path); got != want {
		t.Errorf("%s (go test -update writes it): got\n%s\nwant\n%s", name, got, want)
	}
}

// whole is the report of a run in which everything happened.
func whole() *Report {
	metrics := []string{"mel_loss", "stop_loss"}
	c := NewCollector(metrics,
		Before{Steps: History{Steps: 120, Samples: 1920, Frames: 240000, First: 5.2134, Last: 1.1, Best: 1.05}})
	c.cpu = func() cpuTimes { return cpuTimes{} } // unknown
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	phase := func(p event.RunPhase, s int) {
		c.Take(events(&event.Phase{Phase: p, At: began.Add(time.Duration(s) * time.Second)}))
	}
	work := func(task event.Task, took time.Duration) {
		c.Take(events(&event.Work{Task: task}, &event.Work{Task: task, Ended: true, Time: took}))
	}
	work(event.Speaking, 1500*time.Millisecond) // what was missing before the resume
	phase(event.Training, 4)
	work(event.Evaluating, 1100*time.Millisecond)
	work(event.Filling, time.Second) // is part of its phase
	for step := int64(121); step <= 240; step++ {
		w := timed(step, int(step%3), 80*time.Millisecond+time.Duration(step%3)*15*time.Millisecond,
			300*time.Microsecond)
		w.Loss, w.Metrics, w.Rows, w.Frames, w.Skipped = 0.6+1/float64(step), []float64{0.35, 0.2}, make([]int32, 16),
			2000, step == 200
		c.Take(events(w))
	}
	c.Take(events(
		&event.Evaluation{Step: 200, Loss: 0.6412, Metrics: []float64{0.3712, 0.22}, Samples: 64, Time: time.Second}))
	phase(event.Ending, 24)
	work(event.Saving, 400*time.Millisecond)
	return complete(c, Report{
		Bundle: "myxtts-nano", Device: "cpu", Outcome: "done",
		Versions: map[string]string{"xtts-host": "1.0.0", "onnxruntime": "1.29.0"},
		Parameters: Parameters{
			Trained: Tensors{2, 340}, Frozen: Tensors{44, 8513}, WeightsBytes: 39680, GradientsBytes: 1536,
			MomentsBytes: 3072, AccumulatorBytes: 1536,
		},
		Precision: "f32", Graphs: []Graph{{
			Use: "training", File: "training_model.onnx", Precision: "f32", Nodes: 891, SHA256: "0f6c1c1e",
			Fused: &Fused{
				Kernels: 131, ArenaBytes: 812 << 20, Distances: []Float{1e-7, 3.1e-7}, Roundings: []Float{0, 0},
				Left:       []string{"Add over [2 8192]: a row of 8192 elements"},
				Refused:    []string{"bucket 0: convolution of [2 1 9 8]: failure 3000"},
				Faulty:     []string{"bucket 0: Exp over [8], which computes y"},
				AsExported: []string{"bucket 0: its results are not those of the graph as exported"},
				Unproved:   []string{"metric.accuracy"},
				PlanS:      0.5, CompileS: 2.25, OpenS: 0.125, ProofS: 0.75,
			},
		}},
		Memory:      []Memory{{Device: "cpu", Role: "model", ProcessPeakBytes: 812 << 20}},
		Utilization: []Utilization{{Device: "cpu", Role: "model", Mean: 0.875}},
		Plugins: []Plugin{
			{ID: "augment", Workers: 1, Ranks: 1, Calls: 120, P50Ms: 2.25, P99Ms: 8.5},
			{ID: "features", Workers: 2, Ranks: 2, Restarts: 1, Calls: 1240, P50Ms: 8.25, P99Ms: 14.5},
		},
		Quarantined: 2, Excluded: 3,
		UnknownCharacters: []UnknownCharacter{{Validation, "\u064A", "U+064A", 12, "eval.jsonl:7", "unknown"}},
		Accumulation:      Accumulation{"exact", 1},
		Data: Data{
			Train: DataList{Clips: 412, Seconds: 1600, LeftOut: []LeftOut{
				{"longer than 12.00 s", rundir.ExcludedFile, 2, 30.5},
				{Reason: "cannot be used", File: rundir.QuarantineFile, Clips: 1},
			}},
			Validation: &DataList{Clips: 64, Seconds: 250, LeftOut: []LeftOut{}}, Shared: 3,
			Buckets: []manifest.Bucket{{"T_wav": 44032}, {"T_wav": 88064}}, Padding: Padding{0.095, 0.012},
		},
	}, Measured{
		Began: began, Wall: 24600 * time.Millisecond,
		Pipeline: pipeline.Stats{Batches: 120, Wait: 36 * time.Millisecond, Phases: []pipeline.Phase{
			{Name: "decode", Busy: 1500 * time.Millisecond},
			{Name: "target", Busy: 960 * time.Millisecond, Queue: time.Millisecond},
			{Name: "reference", Busy: 720 * time.Millisecond}, {Name: "transfer", Busy: 40 * time.Millisecond}}},
		Baselines: []BaselineLosses{{
			Train: PredictorLosses{412, 0.5123, 0.2881}, Eval: PredictorLosses{64, 0.5304, 0.3011},
			Baseline: baseline("mel_loss", "huber", 1),
		}},
		Setup: bottleneck.Setup{
			OnCPU: true, Threads: 2, NumWorkers: 1, BufferSize: 50, Slots: 3,
			PluginOf: map[string]string{"target": "features"},
		},
	})
}

func TestGolden(t *testing.T) {
	r := whole()
	folder := t.TempDir()
	if err := r.Write(folder); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", read(t, filepath.Join(folder, rundir.ReportFile)))
	if text := read(t, filepath.Join(folder, rundir.TableFile)); !strings.HasSuffix(text,
		"run folder      "+folder+"\n") {
		t.Error(text)
	}
	golden(t, "table.txt", r.Table("runs/20260102T030405Z"))
}

// TestGPUs shows the devices of a run on two GPUs, whose model's has a limit.
func TestGPUs(t *testing.T) {
	const (
		one = "GPU 0 (NVIDIA H200, GPU-0f6c1c1e-0a5b-4d5e-9f3a-1b2c3d4e5f60)"
		two = "GPU 1 (NVIDIA H200, GPU-8f6c1c1e-0a5b-4d5e-9f3a-1b2c3d4e5f60)"
	)
	r := complete(NewCollector(nil, Before{}), Report{
		Bundle: "myxtts-nano", Device: two, Outcome: "done",
		Memory: []Memory{
			{Device: "cpu", Role: "data", ProcessPeakBytes: 2 << 30},
			{Device: one, Role: "data", ProcessPeakBytes: 812 << 20},
			{Device: two, Role: "model", LimitBytes: 16 << 30, ArenaPeakBytes: 8 << 30, ProcessPeakBytes: 9098 << 20},
		},
		Utilization: []Utilization{
			{Device: "cpu", Role: "data", Mean: 0.25}, {Device: one, Role: "data"},
			{Device: two, Role: "model", Mean: 0.913, Std: 0.0412, Samples: 25},
		},
	}, Measured{Wall: 25 * time.Second})
	golden(t, "table_gpus.txt", r.Table("runs/x/"))
	b, err := json.Marshal(r.Utilization[2])
	want := `{"device":"` + two + `","role":"model","mean":0.913,"std":0.0412,"samples":25}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
}

// The table of a run that ended before anything happened has no empty lines of figures.
func TestTableOfNothing(t *testing.T) {
	r := complete(NewCollector(nil, Before{}), Report{Bundle: "myxtts-nano", Device: "cpu", Outcome: "interrupted"},
		Measured{})
	golden(t, "table_empty.txt", r.Table("runs/x/"))
}

func TestTableIsNotTooWide(t *testing.T) {
	r := whole()
	r.Verdict.Advice = append(r.Verdict.Advice, strings.Repeat("long ", 60), strings.Repeat("x", 200))
	for _, line := range strings.Split(r.Table("runs/x"), "\n") {
		if len([]rune(line)) > columns && !strings.Contains(line, "xxx") { // a word longer than the table is not broken
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
}

func TestReportReadsBack(t *testing.T) {
	want := whole()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := new(Report)
	if err := json.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWriteReplacesAtOnce(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := whole().Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	for _, name := range []string{rundir.ReportFile, rundir.TableFile} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := whole().Write(dir); err == nil {
			t.Errorf("the folder %s was replaced", name)
		}
		if _, err := os.ReadDir(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := whole().Write(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestPhasesRefuse(t *testing.T) {
	for _, s := range []string{`[]`, `1`, `{"a":"b"}`} {
		if err := json.Unmarshal([]byte(s), new(Phases)); err == nil {
			t.Errorf("%s was read", s)
		}
	}
	if b, err := json.Marshal(Phases{}); err != nil || string(b) != "{}" {
		t.Errorf("no phase is %s, %v", b, err)
	}
}

func TestFloat(t *testing.T) {
	for _, v := range []float64{0, -1.5, 1e-300, math.NaN(), math.Inf(1), math.Inf(-1)} {
		b, err := json.Marshal(Float(v))
		if err != nil {
			t.Fatal(err)
		}
		var got Float
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if math.IsInf(v, 0) {
			v = math.NaN()
		}
		if float64(got) != v && !(math.IsNaN(v) && math.IsNaN(float64(got))) {
			t.Errorf("%v became %s and %v", v, b, got)
		}
	}
}

func TestCPU(t *testing.T) {
	m, u, err := CPU("model", time.Hour)
	if err != nil || m.Device != "cpu" || m.Role != "model" || m.ProcessPeakBytes < 1<<20 ||
		m.ProcessPeakBytes > 1<<40 || u.Mean < 0 || u.Mean > 1 {
		t.Errorf("got %+v, %+v, %v", m, u, err)
	}
}

// TestTableInATerminal: on a narrow terminal, the texts of rows are broken once, at its width. A wide one changes
// nothing.
func TestTableInATerminal(t *testing.T) {
	r := &Report{Verdict: Verdict{Bottleneck: "train", Advice: []string{strings.Repeat("advice ", 40)}}}
	if r.TableOf("run", 300) != r.Table("run") {
		t.Error("a wide terminal has another table")
	}
	var lengths []int
	for _, line := range strings.Split(r.TableOf("run", 60), "\n") {
		if strings.Contains(line, "advice") {
			lengths = append(lengths, len(line))
		}
	}
	if want := []int{59, 59, 59, 59, 59, 59, 45}; !slices.Equal(lengths, want) {
		t.Errorf("lines of %d columns, want %d", lengths, want)
	}
}
