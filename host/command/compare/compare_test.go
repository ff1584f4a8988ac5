package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

// made describes a run folder that a test makes: n steps, which take 20 ms less and more than ms in turn.
type made struct {
	name     string
	n        int
	ms       float64
	frames   int
	settings string
	report   string
}

// make writes the folder. Losses fall from 10 by 0.1 with each step, and each tenth step has an evaluation.
func (m made) make(t *testing.T, parent string) string {
	t.Helper()
	dir := filepath.Join(parent, m.name)
	var metrics, eval strings.Builder
	for i := 1; i <= m.n; i++ {
		ms := m.ms - 20 + 40*float64(i%2)
		if i == 1 {
			ms = 1000
		}
		fmt.Fprintf(&metrics, `{"step":%d,"loss":%g,"step_ms":%g,"input_wait_ms":1,"samples":8,"frames":%d}`+"\n", i,
			10-0.1*float64(i), ms, m.frames)
		if i%10 == 0 {
			fmt.Fprintf(&eval, `{"step":%d,"loss":%g}`+"\n", i, 20-0.1*float64(i))
		}
	}
	for name, text := range map[string]string{
		"metrics.jsonl": metrics.String(), "eval.jsonl": eval.String(), "config.yaml": m.settings,
		"report.json": m.report,
	} {
		if text == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func reportOf(steps int, memory int) string {
	return fmt.Sprintf(`{"bundle":"nano","device":"GPU 1","precision":"bf16","outcome":"done","steps":%d,"wall_s":62.4,
		"graphs":[{"use":"training","sha256":"0123456789abcdef"}],"input_stall_ratio":0.05,
		"step_ms":{"steps":%d,"by_bucket":{"0":{"steps":9,"variation":0.1},"1":{"steps":9,"variation":0.12}}},
		"memory":[{"device":"GPU 1","role":"model","limit_bytes":17179869184,"process_peak_bytes":%d}],
		"utilization":[{"device":"GPU 1","role":"model","mean":0.9,"samples":5},
			{"device":"GPU 2","role":"data","mean":0}],
		"data":{"train":{"clips":24,"seconds":45.6}},"versions":{"go":"1.26"}}`, steps, steps-1, memory)
}

// three makes runs of which b has twice the batch and c is killed.
func three(t *testing.T) []string {
	dir := filepath.Join(t.TempDir(), "Läufe 1")
	return []string{
		made{"a", 201, 100, 800, "batch_size: 8  # flag\nrun_dir: x\n", reportOf(201, 8<<30)}.make(t, dir),
		made{"b", 101, 160, 1600, "batch_size: 16  # flag\nrun_dir: y\n", reportOf(101, 12<<30)}.make(t, dir),
		made{"c", 15, 100, 800, "batch_size: 8  # flag\nrun_dir: z\n", ""}.make(t, dir),
	}
}

func opened(t *testing.T, folders []string) (all []*record.Run) {
	t.Helper()
	for _, folder := range folders {
		run, err := record.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, run)
	}
	return all
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// TestFigures: by hand. a: 200 steps of 100 ms after the first, 800 frames each; b: 100 of 160 ms, of 1600 frames.
func TestFigures(t *testing.T) {
	r := of(opened(t, three(t)[:2]))
	a, b := r.Runs[0], r.Runs[1]
	near(t, "steps/min of a", a.StepsPerMinute.Value, 600)
	near(t, "steps/min of b", b.StepsPerMinute.Value, 375)
	near(t, "frames/s of a", a.FramesPerSecond.Value, 8000)
	near(t, "frames/s of b", b.FramesPerSecond.Value, 10_000)
	near(t, "speed-up", b.SpeedUp.Value, 0.625)
	near(t, "speed-up of frames", b.SpeedUpFrames.Value, 1.25)
	near(t, "variation", a.StepMs.Variation, 0.2) // 80 and 120 ms in turn
	near(t, "variation within a bucket", a.StepMs.WithinBucket, 0.12)
	if a.SpeedUp != nil || a.InputStall != 0.05 || len(a.Utilization) != 1 || *b.SpeedUp.Low > 0.625 {
		t.Errorf("%+v", a)
	}
	// Step 101 is the last that both have. a: the mean of the losses of steps 82 to 101, and the evaluation of step
	// 100.
	if r.EqualStep != 101 || r.Evaluated != 100 || a.AtStep.ValidationStep != 100 {
		t.Errorf("equal step %d, evaluated %d: %+v", r.EqualStep, r.Evaluated, a.AtStep)
	}
	near(t, "loss of a at equal steps", float64(a.AtStep.Training), 10-0.1*91.5)
	near(t, "evaluation of both", float64(b.Evaluation), 10)
	// b has 1 s and 100 steps of 160 ms: 17 s. In these, a makes 1 s and 160 steps of 100 ms: step 161.
	near(t, "equal time", r.EqualTimeS, 17)
	if a.AtTime.Step != 161 || b.AtTime.Step != 101 || a.AtTime.ValidationStep != 160 {
		t.Errorf("at equal time: %+v, %+v", a.AtTime, b.AtTime)
	}
	near(t, "loss of a at equal time", float64(a.AtTime.Training), 10-0.1*151.5)
}

func TestSweeps(t *testing.T) {
	folders := three(t)
	r := of(opened(t, folders[:2]))
	s := r.Sweep
	if len(r.Differences) != 1 || s == nil || s.Setting != "batch-size" || !s.Ideal || *s.Points[1].Ideal != 16_000 {
		t.Fatalf("%+v, %+v", r.Differences, s)
	}
	near(t, "efficiency", *s.Points[1].Efficiency, 10_000.0/16_000)
	dir := t.TempDir()
	var cards []string
	for _, gib := range []int{24, 12, 16} {
		settings := fmt.Sprintf("model_gpu_memory: %dGiB\ndata_gpu_memory: %dMiB\nlr: 0.1\nmax_steps: %d\n", gib,
			gib*512, gib)
		cards = append(cards, made{fmt.Sprint(gib), 30, float64(300 - gib), 800, settings, reportOf(30,
			gib<<29)}.make(t, dir))
	}
	r = of(opened(t, cards))
	const title = "Apart from their lengths, the runs differ in exactly one setting: --model-gpu-memory"
	s = r.Sweep
	if s == nil || s.title(r) != title || s.Setting != "model-gpu-memory" || s.Unit != "GiB" || s.Ideal ||
		s.Points[0].X != 12 || s.Points[0].Run != 1 || s.Points[2].X != 24 {
		t.Errorf("memory limits: %+v", s)
	}
	other := made{"lr", 30, 100, 800, "batch_size: 16\nlr: 0.2\n", reportOf(30, 1)}.make(t, dir)
	one := made{"one", 30, 100, 800, "batch_size: 8\nlr: 0.1\n", reportOf(30, 1)}.make(t, dir)
	if s := of(opened(t, []string{one, other})).Sweep; s != nil {
		t.Errorf("two settings differ: %+v", s)
	}
	older := made{"older", 30, 100, 800, "batch_size: 8\nrecognizer: a\n", reportOf(30, 1)}.make(t, dir)
	newer := made{"newer", 30, 100, 800, "batch_size: 16\nrecognizer: b\nnews: true\n", reportOf(30, 1)}.make(t, dir)
	if s := of(opened(t, []string{older, newer})).Sweep; s == nil || s.Setting != "batch-size" {
		t.Errorf("a setting that only one run has: %+v", s)
	}
	for value, want := range map[string]float64{"8": 8, "1536MiB": 1.5, "2TiB": 2048, "auto": math.NaN(),
		"1e999": math.NaN()} {
		if got, _ := numberOf(value); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is %g, want %g", value, got, want)
		}
	}
}

func TestRemarks(t *testing.T) {
	folders := three(t)
	dir := t.TempDir()
	odd := strings.NewReplacer("GPU 1", "cpu", "bf16", "f32", "0123456", "f123456", `"clips":24`, `"clips":25`, "1.26", "1.27",
		`"done"`, `"no space"`).Replace(reportOf(50, 1))
	folders = append(folders, made{"odd", 50, 100, 800, "batch_size: 8\n", odd}.make(t, dir))
	texts := func(folders ...string) string {
		r := of(opened(t, folders))
		var list []string
		for _, m := range r.Remarks {
			list = append(list, m.What+affects(m))
		}
		return fmt.Sprint(r.ComparableSpeed, r.ComparableLosses, " ", strings.Join(list, "; "))
	}
	for _, c := range []struct{ got, want string }{
		{texts(folders[0], folders[0]), "true true "},
		{texts(folders[0], folders[1]),
			"false false the batches differ, so a step is not the same work: compare frames/s, and " +
				"losses at equal time: A 8, B 16 (speed, losses)"},
		{texts(folders[0], folders[2]),
			"false false B is unfinished, and has no report that can be read: its figures are of its steps, and its " +
				"device, bundle, data and ranks are not known (speed, losses); B has fewer than " +
				"20 steps that count: its speed has no interval (speed)"},
		{texts(folders[0], folders[3]),
			"false false the training graphs differ: A 0123456789ab, B f123456789ab (speed, losses); " +
				"the devices differ: A GPU 1, B cpu (speed); the precisions differ: A bf16, B f32 (speed, " +
				"losses); the training data " +
				"differ: A 24 clips of 45.6 s, B 25 clips of 45.6 s (speed, losses); the versions of go differ: " +
				"A 1.26, B 1.27 " +
				"(speed); B is not done: its state is failed (losses)"},
	} {
		if c.got != c.want {
			t.Errorf("got\n%s\nwant\n%s", c.got, c.want)
		}
	}
}

// TestBestByMeasure: the best evaluation is that of the run, with the value of its measure.
func TestBestByMeasure(t *testing.T) {
	folders := three(t)
	judged := strings.Replace(reportOf(201, 8<<30), "{", `{"evaluation":{"best":{"step":10,"loss":19,"by":`+
		`"spoken.mcd_db","value":6.5}},`, 1)
	a := made{"judged", 201, 100, 800, "batch_size: 8\n", judged}.make(t, t.TempDir())
	text := of(opened(t, []string{a, folders[1]})).Text(80)
	if want := "\nbest evaluation                 19.00         10.00\n" +
		"  by mcd_db                     6.500             -\n"; !strings.Contains(text, want) {
		t.Errorf("there is no %q in\n%s", want, text)
	}
}

// TestNoBest: the rows of evaluations stand below their name, also where no evaluation is the best.
func TestNoBest(t *testing.T) {
	dir := made{"a", 30, 100, 800, "best_by: none\n", ""}.make(t, t.TempDir())
	r := of(opened(t, []string{dir, dir}))
	if want := "\nbest evaluation                     -             -\n" +
		"  at step 30                    17.00         17.00\n"; !strings.Contains(r.Text(80), want) {
		t.Errorf("there is no %q in\n%s", want, r.Text(80))
	}
	names := map[string]bool{}
	for _, row := range r.rows() {
		if names[row.Whole] {
			t.Errorf("two rows are %q", row.Whole)
		}
		names[row.Whole] = true
	}
}

// TestText: the table of two runs, by hand, and its width with more runs.
func TestText(t *testing.T) {
	folders := three(t)
	text := of(opened(t, folders[:2])).Text(80)
	for _, want := range []string{
		"A   " + folders[0] + "  (baseline)\nB   " + folders[1] +
			"\n\n                                    A             B\n",
		"\nsteps/min                         600           375\n",
		"\n  speed-up                          -          0.62\n",
		"\nframes/s                        8,000        10,000\n",
		"\n  speed-up                          -          1.25\n",
		"\nstep time                      100 ms        160 ms\n",
		"\n  variation                      20 %          12 %\n",
		"\nbusy: model GPU                  90 %          90 %\n",
		"\nmemory: model GPU             8.0 GiB      12.0 GiB\n",
		"\n  limit                      16.0 GiB      16.0 GiB\n",
		"\n  at step 101                   0.850         0.850\n",
		"\n  after 17 s                   -5.150         0.850\n    at step                       161           " +
			"101\n",
		"\n16                   B        375     10,000       62 %   12.0 GiB       done\n",
		"\n--batch-size                        8            16\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	many := []string{folders[0], folders[1], folders[2], folders[1], folders[0], folders[2]}
	for _, width := range []int{80, 120} {
		wide := of(opened(t, many)).Text(width)
		for line := range strings.Lines(wide) {
			if n := fold.Width(strings.TrimSuffix(line, "\n")); n > width && !strings.Contains(line, "Läufe 1") {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
		if blocks := strings.Count(wide, "\nsteps/min "); blocks != map[int]int{80: 2, 120: 1}[width] {
			t.Errorf("%d blocks in %d columns:\n%s", blocks, width, wide)
		}
	}
}

func TestCommand(t *testing.T) {
	folders := three(t)
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "c.html")
	if err := Run(&out, Options{Runs: folders, Baseline: folders[1], JSON: true, File: file}); err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 3 || got.Runs[0].Folder != folders[1] || math.Abs(got.Runs[1].SpeedUp.Value-1.6) > 1e-9 ||
		got.Runs[2].Letter != "C" {
		t.Errorf("%s", out.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"No run trains more frames per second than A, the baseline; the next, B, trains 0.80 times as many.",
		"steps/min, speed-up, 95 %", "Frames per second over --batch-size", "Training loss at equal time",
		"Settings that differ",
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("there is no %q in the page", want)
		}
	}
	for _, runs := range [][]string{folders[:1], {folders[0], filepath.Dir(folders[0])}} {
		if err := Run(&out, Options{Runs: runs}); exit.Code(err) != exit.StatusRefused {
			t.Errorf("%q: %v", runs, err)
		}
	}
}

// TestNamedTwice: a run is one run by whatever path it is named.
func TestNamedTwice(t *testing.T) {
	folders := three(t)
	first, second := folders[0], folders[1]
	t.Chdir(filepath.Dir(first))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(first, link); err != nil {
		t.Fatal(err)
	}
	for _, again := range []string{first + "/", "a", "../Läufe 1/a", link} {
		var out bytes.Buffer
		err := Run(&out, Options{Runs: []string{first, second, again}})
		if exit.Code(err) != exit.StatusRefused || !strings.Contains(err.Error(), again+": the run is named twice") {
			t.Errorf("%s: %v", again, err)
		}
		if err := Run(&out, Options{Runs: []string{first, second}, Baseline: again, JSON: true}); err != nil {
			t.Errorf("the baseline %s, which is one of the runs: %v", again, err)
		}
	}
}
