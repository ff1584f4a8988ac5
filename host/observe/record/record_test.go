package record

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// folder makes a run folder with these files.
func folder(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const threeSteps = `{"step":1,"epoch":0,"loss":4,"mel_loss":1,"lr":0.1,"grad_norm":2,"step_ms":500,"input_wait_ms":1,"samples":8,"frames":100,"bucket":0}
{"step":2,"epoch":0,"loss":null,"lr":0.2,"grad_norm":null,"step_ms":50,"input_wait_ms":2,"samples":8,"frames":100,"bucket":0,"skipped":true}
{"step":3,"epoch":0,"loss":3,"mel_loss":1,"lr":0.3,"grad_norm":1,"step_ms":150,"input_wait_ms":3,"samples":8,"frames":300,"bucket":0}
`

const twoEvaluations = `{"step":1,"loss":5,"mel_loss":0.5,"samples":6,"eval_ms":9.5}
{"step":3,"loss":6,"mel_loss":0.4,"samples":6,"eval_ms":9.5}
`

func TestOpen(t *testing.T) {
	dir := folder(t, map[string]string{
		"metrics.jsonl": threeSteps + `{"step":4,"lo`, // a run that was killed
		"eval.jsonl":    twoEvaluations,
		"config.yaml":   "# Length\nbatch_size: 8  # flag\n# run_dir: \"/x/run\"  # default\nlr: 0.1\n",
		"quarantine.jsonl": `{"id":"a","reason":"silent","stage":"decode"}
{"id":"b","reason":"torn","stage":"decode"}
{"id":"c","reason":"torn","stage":"decode"}
`,
	})
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Steps
	if s.Count != 3 || s.Skipped != 1 || s.Samples != 24 || s.Frames != 500 || s.FirstStep != 1 || s.LastStep != 3 ||
		s.First != 4 || s.Last != 3 || s.Best != 3 || s.BestStep != 3 {
		t.Errorf("steps: %+v", s)
	}
	// without the first step: 2 steps and 400 frames in 200 ms
	if steps, frames := s.Speed(); steps != 10 || frames != 2000 {
		t.Errorf("%g steps/s and %g frames/s", steps, frames)
	}
	if sum := s.Sum(); sum.Ms != 700 || sum.Wait != 6 || sum.Loss != 7 || sum.Losses != 2 {
		t.Errorf("sum: %+v", sum)
	}
	if e := r.Evaluations; e.Count != 2 || e.Best.Step != 1 || e.Best.Loss != 5 ||
		e.All[1].Metrics[0] != (Value{"mel_loss", 0.4}) || e.At(2).Step != 1 || e.At(0) != nil {
		t.Errorf("evaluations: %+v", e)
	}
	want := []Setting{{"batch-size", "8", "flag"}, {"run-dir", "/x/run", "default"}, {"lr", "0.1", ""}}
	if !slices.Equal(r.Settings, want) || r.Setting("batch-size") != "8" || r.Setting("x") != "" {
		t.Errorf("settings: %q", r.Settings)
	}
	q := r.Quarantine
	if q.Clips != 3 || len(q.Reasons) != 2 || q.Reasons[0].Reason != "torn" || q.Reasons[0].Clips != 2 ||
		!slices.Equal(q.Reasons[0].First, []string{"b", "c"}) {
		t.Errorf("quarantine: %+v", q)
	}
	if r.Status() != Unfinished || len(r.Problems) != 1 ||
		!strings.HasPrefix(r.Problems[0], "report.json is not there") {
		t.Errorf("%s, problems %q", r.Status(), r.Problems)
	}
}

func TestStatus(t *testing.T) {
	for text, want := range map[string]string{
		`{"outcome":"done","steps":3}`:                                  Done,
		`{"outcome":"interrupted","steps":3}`:                           Interrupted,
		`{"outcome":"the disk is full","steps":3}`:                      Failed,
		`{"outcome":"x","steps":3,"verdict":{"diverged":true}}`:         Diverged,
		`{"outcome":"done","steps":2}`:                                  Unfinished,
		`{"outcome":7,"steps":3,"memory":"none","versions":{"go":"1"}}`: Failed,
		`{"outcome":"done","steps":3} and more`:                         Unfinished,
	} {
		dir := folder(t, map[string]string{"metrics.jsonl": threeSteps, "report.json": text, "config.yaml": ""})
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status() != want {
			t.Errorf("%s: %s, want %s", text, r.Status(), want)
		}
		plain := want != Unfinished && !strings.Contains(text, "7")
		if plain != (len(r.Problems) == 0) {
			t.Errorf("%s: problems %q", text, r.Problems)
		}
		if g, err := Look(dir); err != nil || g.Status != want || g.Steps != 3 {
			t.Errorf("%s: %+v, %v", text, g, err)
		}
	}
}

// TestCurve: a spike stays in a bin of many steps, and the bins have equal numbers of them.
func TestCurve(t *testing.T) {
	var c Curve
	for step := int64(1); step <= 5000; step++ {
		v := 1.0
		if step == 3333 {
			v = 99
		}
		c.Add(step, v)
	}
	c.Add(5001, math.NaN())
	if c.Width != 16 || len(c.Bins) != 313 || c.NotFinite != 1 || c.Bins[0].N != 16 || c.Bins[312].N != 8 {
		t.Errorf("%d bins of %d, %d not finite", len(c.Bins), c.Width, c.NotFinite)
	}
	if !slices.Contains(c.Points(), Point{3333, 99}) {
		t.Error("the spike is lost")
	}
	// 3333 is the fifth step of the bin from 3329 to 3344
	if got := c.Means()[208]; got != (Point{3344, (15 + 99.0) / 16}) {
		t.Errorf("%+v", got)
	}
}

func TestPiecesOfALongRun(t *testing.T) {
	s := &Steps{Width: 1}
	for step := int64(1); step <= 200_000; step++ {
		loss := float64(step)
		s.add(&stepLine{Step: &step, Loss: &loss, StepMs: 2, Frames: 3}, step == 1)
	}
	sum := s.Sum()
	if s.Width != 4 || len(s.Pieces) != 50_000 || sum.Steps != 200_000 || sum.Timed != 199_999 ||
		sum.Frames != 3*199_999 || sum.Loss != 200_000*200_001/2 || s.Pieces[1].Last != 8 {
		t.Errorf("%d pieces of %d: %+v", len(s.Pieces), s.Width, sum)
	}
}

func TestManyEvaluations(t *testing.T) {
	var text strings.Builder
	for step := 1; step <= 20_001; step++ {
		fmt.Fprintf(&text, `{"step":%d,"loss":%d,"samples":1,"eval_ms":1}`+"\n", step, 30_000-step+max(0, 2*(step-777)))
	}
	e, problem := readEvaluations(files.In(folder(t, map[string]string{"eval.jsonl": text.String()}), "eval.jsonl"),
		&choice{step: -1, by: report.ByLoss})
	last := e.All[len(e.All)-1]
	if problem != "" || e.Count != 20_001 || len(e.All) > maxEvaluations || e.All[0].Step != 1 || e.All[1].Step != 9 ||
		last.Step != 20_001 || e.Best.Step != 777 {
		t.Errorf("%q: %d of %d, from %d and %d to %d, best %d", problem, len(e.All), e.Count, e.All[0].Step,
			e.All[1].Step, last.Step, e.Best.Step)
	}
}

func TestSpoken(t *testing.T) {
	line := func(step, clip int, file string) string {
		return fmt.Sprintf(`{"step":%d,"clip":%d,"id":"x","text":"t","file":%q,"seconds":1.5,"ended":true,`+
			`"measures":{"wer":0.5,"cer":"bad"}}`, step, clip, file) + "\n"
	}
	dir := folder(t, map[string]string{
		"metrics.jsonl": threeSteps, "eval.jsonl": `{"step":2,"loss":1}` + "\n" + `{"step":3,"loss":2}` + "\n",
		"spoken.jsonl": line(1, 1, "samples/step-000001/clip-1.wav") + line(2, 1, "samples/step-000002/clip-1.wav") +
			line(3, 1, "samples/../../secret.wav") + line(3, 2, "samples/step-000003/clip-2.wav"),
	})
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Spoken
	if s.Evaluations != 3 || len(s.First) != 1 || len(s.Best) != 1 || len(s.Last) != 2 || s.Best[0].Step != 2 {
		t.Fatalf("%+v", s)
	}
	u := s.Best[0]
	if !u.Clip || u.Number != 1 || u.Seconds != 1.5 || !*u.Ended || !slices.Equal(u.Measures, []Value{{"wer", 0.5}}) ||
		u.File != "samples/step-000002/clip-1.wav" {
		t.Errorf("%+v", u)
	}
	if s.Refused != 1 || s.Last[0].File != "" || s.Last[1].File == "" {
		t.Errorf("%d refused: %+v", s.Refused, s.Last)
	}
	old := folder(t, map[string]string{
		"metrics.jsonl": threeSteps, "eval.jsonl": `{"step":3,"loss":2}` + "\n",
		"samples/step-000001/1.wav": "", "samples/step-000001/2.wav": "", "samples/step-000003/1.wav": "",
	})
	if r, err = Open(old); err != nil || r.Spoken.Evaluations != 2 || len(r.Spoken.First) != 2 ||
		len(r.Spoken.Last) != 1 || r.Spoken.Best != nil || r.Spoken.First[1].File != "samples/step-000001/2.wav" {
		t.Errorf("%+v, %v", r.Spoken, err)
	}
}

// TestOldSamplesOfManySteps: the name of step 1,000,000 comes before that of step 999,999, as a text.
func TestOldSamplesOfManySteps(t *testing.T) {
	r, err := Open(folder(t, map[string]string{
		"metrics.jsonl": threeSteps, "samples/step-999999/1.wav": "", "samples/step-1000000/1.wav": "",
	}))
	if err != nil || len(r.Spoken.First) != 1 || r.Spoken.First[0].Step != 999_999 ||
		r.Spoken.Last[0].Step != 1_000_000 {
		t.Errorf("%+v, %v", r.Spoken, err)
	}
}

// TestBackwards: a step that goes back is named so, and not as a missing one.
func TestBackwards(t *testing.T) {
	dir := folder(t, map[string]string{"spoken.jsonl": `{"step":2}` + "\n" + `{"step":1}` + "\n"})
	_, spoken := readSpoken(files.In(dir), -1)
	_, problem := readProbes(files.In(dir, "spoken.jsonl"))
	if want := ErrOrder.Error(); !strings.Contains(problem, want) || !strings.Contains(spoken, want) {
		t.Errorf("%q, %q", problem, spoken)
	}
}

// TestHostileFolders: what is no file of a run is named, and nothing waits or leads elsewhere.
func TestHostileFolders(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.jsonl")
	if err := os.WriteFile(outside, []byte(threeSteps), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(path string) error{
		"a symbolic link": func(path string) error { return os.Symlink(outside, path) },
		"a named pipe":    func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"a folder":        func(path string) error { return os.Mkdir(path, 0o777) },
		"1 has more than 64 MiB": func(path string) error {
			if err := os.WriteFile(path, nil, 0o666); err != nil {
				return err
			}
			return os.Truncate(path, 1<<30) // without a line break
		},
	} {
		for _, file := range []string{
			rundir.MetricsFile, rundir.EvalFile, rundir.SpokenFile, rundir.ProbesFile, rundir.QuarantineFile,
		} {
			dir := folder(t, map[string]string{"report.json": `{"outcome":"done"}`, "config.yaml": ""})
			if err := spoil(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			r, err := Open(dir)
			if err != nil {
				t.Fatalf("%s as %s: %v", file, name, err)
			}
			if len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], file+":") ||
				!strings.Contains(r.Problems[0], name) || r.Steps.Count > 0 {
				t.Errorf("%s as %s: %d steps, problems %q", file, name, r.Steps.Count, r.Problems)
			}
		}
	}
	damaged := `{"step":1,"loss":1,"step_ms":5}
[]
{"step":"2"}
{"loss":2}
{"step":1,"loss":7}
{"step":2,"loss":1e999}
{"step":3,"loss":1e308,"step_ms":1e308,"frames":4}
{"step":4,"loss":1e308,"step_ms":1e308,"frames":4}
`
	r, err := Open(folder(t, map[string]string{"metrics.jsonl": damaged, "report.json": "{}", "config.yaml": ""}))
	if err != nil || r.Steps.Count != 3 || r.Steps.LastStep != 4 {
		t.Fatalf("%+v, %v", r.Steps, err)
	}
	if want := "metrics.jsonl:2 and 4 more lines were left out: "; !strings.HasPrefix(r.Problems[0], want) {
		t.Errorf("problems %q", r.Problems)
	}
	if steps, frames := r.Steps.Speed(); math.IsNaN(steps) || math.IsNaN(frames) {
		t.Errorf("%g, %g", steps, frames)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("an empty folder is a run")
	}
}

// TestLongLines: a line that is too long is named and left out, and what is before and after it is read.
func TestLongLines(t *testing.T) {
	long := `{"step":2,"text":"` + strings.Repeat("x", 3<<20) + `"}` + "\n"
	line := func(step int, rest string) string { return fmt.Sprintf(`{"step":%d%s}`, step, rest) + "\n" }
	around := func(rest string) string { return line(1, rest) + long + line(3, rest) }
	dir := folder(t, map[string]string{
		"metrics.jsonl": around(`,"loss":4,"step_ms":5`) + long, "config.yaml": "best_by: spoken.mcd_db\n",
		"eval.jsonl":       line(1, `,"loss":5`) + long + long + line(3, `,"loss":6`),
		"spoken.jsonl":     around(`,"clip":1,"id":"a","text":"t","ended":true,"measures":{"length_ratio":1,"mcd_db":6}`),
		"probes.jsonl":     around(`,"name":"p","shape":[1]`) + strings.TrimSuffix(long, "\n"),
		"quarantine.jsonl": `{"id":"a","reason":"r"}` + "\n" + long + `{"id":"b","reason":"r"}` + "\n",
	})
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Steps.Count != 2 || r.Steps.LastStep != 3 || r.Evaluations.Count != 2 || r.Spoken.Evaluations != 2 ||
		r.Spoken.Last[0].Step != 3 || r.Probes.Step != 3 || r.Quarantine.Clips != 2 {
		t.Errorf("%d steps to %d, %d evaluations, %+v, probes of step %d, %d clips", r.Steps.Count, r.Steps.LastStep,
			r.Evaluations.Count, r.Spoken, r.Probes.Step, r.Quarantine.Clips)
	}
	const why = " left out: it has more than 256 KiB"
	want := []string{
		"metrics.jsonl:2 and 1 more line were" + why, "eval.jsonl:2 and 1 more line were" + why,
		"spoken.jsonl:2 was" + why,
		"probes.jsonl:2 and 1 more line were" + why, "quarantine.jsonl:2 was" + why,
	}
	if got := r.Problems[1:]; !slices.Equal(got, want) { // the first is about the report
		t.Errorf("problems\n%q, want\n%q", got, want)
	}
	g, err := Look(dir)
	if err != nil || g.Steps != 3 || g.Best == nil || g.Best.Step != 1 || !slices.Equal(g.Problems, want[:3]) {
		t.Errorf("%+v, %v", g, err)
	}
	old := `{"outcome":"done","steps":1,"evaluation":{"best":{"step":1,"loss":5}}}`
	if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte(old), 0o666); err != nil {
		t.Fatal(err)
	}
	if g, err := Look(dir); err != nil || g.Status != Unfinished { // the end of the file has no step
		t.Errorf("%+v, %v", g, err)
	}
}

// TestMemoryOfALongRun: it does not grow with the lines.
func TestMemoryOfALongRun(t *testing.T) {
	var text strings.Builder
	for step := range 300_000 { // 60 MB
		fmt.Fprintf(&text, `{"step":%d,"epoch":0,"loss":%g,"lr":0.1,"grad_norm":2,"step_ms":5.5,"input_wait_ms":1,`+
			`"samples":8,"frames":100,"bucket":0,"note":"%s"}`+"\n", step+1, 1/float64(step+1), strings.Repeat("x", 60))
	}
	dir := folder(t, map[string]string{"metrics.jsonl": text.String(), "report.json": "{}", "config.yaml": ""})
	text.Reset()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 12<<20 || r.Steps.Count != 300_000 {
		t.Errorf("%d bytes for %d steps", grown, r.Steps.Count)
	}
	runtime.KeepAlive(r)
}

func TestSize(t *testing.T) {
	dir := folder(t, map[string]string{"a": "12345", "b/c": "123", "b/d/e": "12"})
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 1<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(big, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if bytes, all := Size(dir); bytes != 10 || !all {
		t.Errorf("%d bytes, all: %v", bytes, all)
	}
}
