package follow

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/page/pagetest"
)

// folder is a run folder whose files a test writes.
type folder struct {
	t   *testing.T
	dir string
}

func (f folder) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) add(name, text string) {
	f.t.Helper()
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		f.t.Fatal(err)
	}
}

// lines are those of steps with losses.
func lines(from, to int, loss float64) string {
	var b strings.Builder
	for step := from; step <= to; step++ {
		fmt.Fprintf(&b, `{"step":%d,"epoch":0,"loss":%g,"mel_loss":0.5,"lr":0.001,"step_ms":%d,"input_wait_ms":1}`+"\n",
			step, loss, step)
	}
	return b.String()
}

// TestGrowing: a file that grows is read once, also in the middle of a line. One that a resumed run has cut and gone on
// with, and one that was replaced, are read again.
func TestGrowing(t *testing.T) {
	f := folder{t, t.TempDir()}
	r := New(f.dir)
	r.Read(1 << 20)
	if now := r.Now(); now.Last != 0 || !math.IsNaN(now.Loss) || r.Status() != "unfinished" {
		t.Errorf("an empty folder: %+v, %s", now, r.Status())
	}
	expect := func(what string, again, steps, last int64, loss float64) {
		t.Helper()
		for r.Read(64) {
		}
		m, now := r.Mark(), r.Now()
		if m.Again != again || m.Steps != steps || now.Last != last || now.Loss != loss {
			t.Errorf("%s: %+v, %+v; want %d, %d, %d, %g", what, m, now, again, steps, last, loss)
		}
	}
	all := lines(1, 60, 3)
	f.add(rundir.MetricsFile, all[:len(all)-20])
	expect("a line that is not complete", 0, 59, 59, 3)
	f.add(rundir.MetricsFile, all[len(all)-20:])
	expect("its end", 0, 60, 60, 3)
	f.write(rundir.MetricsFile, lines(1, 40, 3)+lines(41, 80, 2)) // longer than before
	expect("cut back to step 40, and gone on", 1, 80, 80, 2)
	f.write(rundir.MetricsFile, lines(1, 10, 3))
	expect("cut back to step 10", 2, 10, 10, 3)
	if err := os.Remove(filepath.Join(f.dir, rundir.MetricsFile)); err != nil {
		t.Fatal(err)
	}
	r.Read(64)
	if m := r.Mark(); m.Again != 3 || m.Steps != 0 {
		t.Errorf("removed: %+v", m)
	}
}

// TestLongLines: a line that is too long is left out, and those around it are read, whatever pieces are read at a time.
func TestLongLines(t *testing.T) {
	f := folder{t, t.TempDir()}
	long := `{"step":2,"x":"` + strings.Repeat("y", maxLine) + `"}` + "\n"
	f.add(rundir.MetricsFile, lines(1, 1, 1)+long+lines(3, 3, 1)+long)
	f.add(rundir.MetricsFile, lines(4, 4, 1))
	for _, piece := range []int64{1 << 10, 1 << 20, 300} {
		r := New(f.dir)
		for r.Read(piece) {
		}
		if m, now := r.Mark(), r.Now(); m.Steps != 3 || now.Last != 4 {
			t.Errorf("in pieces of %d bytes: %+v, %+v", piece, m, now)
		}
	}
}

// TestLinks: no link is followed, and a pipe is not waited for.
func TestLinks(t *testing.T) {
	f := folder{t, t.TempDir()}
	elsewhere := filepath.Join(t.TempDir(), "metrics")
	if err := os.WriteFile(elsewhere, []byte(lines(1, 5, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{rundir.MetricsFile, rundir.ReportFile, rundir.SettingsFile, rundir.QuarantineFile} {
		if err := os.Symlink(elsewhere, filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := New(f.dir)
	r.Read(1 << 20)
	if m := r.Mark(); m.Steps != 0 || m.Clips != 0 || r.Report() != nil || r.Settings() != nil {
		t.Errorf("%+v, %v, %v", m, r.Report(), r.Settings())
	}
	if p := r.Problems(); len(p) != 4 || !strings.Contains(p[0], "link") {
		t.Errorf("%q", p)
	}
	if lines, _ := End(r.dir.Join(rundir.MetricsFile), 5); lines != nil {
		t.Errorf("%q", lines)
	}
}

// TestProblems: a file that cannot be read, and lines that are no lines of it, are named with the reason. The other
// files and lines are read, and a file that is mended has no problem any more.
func TestProblems(t *testing.T) {
	f := folder{t, t.TempDir()}
	if err := os.Mkdir(filepath.Join(f.dir, rundir.MetricsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(rundir.EvalFile, `{"step":20,"loss":2}`+"\n"+`{"step":40,"lo`+"\n"+"\x00\x00\n"+`{"step":60,"loss":1}`+"\n")
	f.write(rundir.SpokenFile, `{"step":80,"clip":1,"text":"a","measures":{"mcd_db":5}}`+"\n")
	f.write(rundir.QuarantineFile, strings.Repeat("y", 2*maxLine)+"\n"+`{"id":"a"}`+"\n")
	f.write(rundir.ReportFile, `{"outcome":`)
	f.write(rundir.SettingsFile, "max_steps: 100  # flag\n")
	r := New(f.dir)
	expect := func(want ...string) {
		t.Helper()
		for r.Read(1000) {
		}
		got := r.Problems()
		if len(got) != len(want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%q, want %q", got[i], want[i])
			}
		}
	}
	left := rundir.EvalFile + ":2 and 1 more line were left out: unexpected end of JSON input"
	expect(rundir.MetricsFile+": a folder", left, rundir.QuarantineFile+":1 was left out: it has more than 256 KiB",
		"report.json: unexpected end of JSON input")
	if first, last := r.Span(); first != 20 || last != 80 {
		t.Errorf("from step %d to %d", first, last)
	}
	_, evaluations, speech := r.Curves(20, 80, 100)
	_, count := r.Clips(0, 5)
	if len(evaluations) != 1 || len(evaluations[0].Bins) != 2 || len(speech) != 1 || count != 1 {
		t.Errorf("%+v, %+v, %d clips", evaluations, speech, count)
	}
	if err := os.Remove(filepath.Join(f.dir, rundir.MetricsFile)); err != nil {
		t.Fatal(err)
	}
	f.write(rundir.MetricsFile, lines(1, 3, 1)+`{"step":4,"lo`+"\n"+`{"step":2,"loss":1}`+"\n"+lines(5, 6, 1))
	f.write(rundir.ReportFile, `{"outcome":"done","steps":6}`)
	expect(rundir.MetricsFile+":4 and 1 more line were left out: no object", left, rundir.QuarantineFile)
	if now := r.Now(); now.Last != 6 || r.Status() != "done" {
		t.Errorf("%+v, %s", now, r.Status())
	}
	brief := Brief(f.dir) // it does not count lines that it does not read
	for brief.Read(1000) {
	}
	if p := brief.Problems(); len(p) != 1 || p[0] != left {
		t.Errorf("%q", p)
	}
}

// TestBounds: what is kept of a long run is bounded, and a single spike stays.
func TestBounds(t *testing.T) {
	r := New(t.TempDir())
	for step := 1; step <= 3*maxBins; step++ {
		loss := 1.0
		if step == 70_000 {
			loss = 50
		}
		r.steps.take(fmt.Appendf(nil, `{"step":%d,"loss":%g,"name%d":1,"grad_norm":null}`, step, loss, step))
	}
	if n := len(r.steps.byName); n != maxNames {
		t.Errorf("%d curves", n)
	}
	for name, c := range r.steps.byName {
		if len(c.Bins) > maxBins {
			t.Errorf("%s has %d bins", name, len(c.Bins))
		}
	}
	all, _, _ := r.Curves(0, math.MaxInt64, 600)
	if all[0].Name != "loss" || len(all[0].Bins) == 0 || len(all[0].Bins) > 600 {
		t.Fatalf("%s in %d pieces", all[0].Name, len(all[0].Bins))
	}
	spike := func(s Series) bool {
		for _, b := range s.Bins {
			if b.Max == 50 && b.MaxAt == 70_000 {
				return true
			}
		}
		return false
	}
	if !spike(all[0]) {
		t.Error("the spike is lost")
	}
	some, _, _ := r.Curves(69_901, 70_100, 600)
	if n := len(some[0].Bins); !spike(some[0]) || n < 40 || n > 52 {
		t.Errorf("200 steps in %d pieces", n)
	}
	for i := range 2 * maxClips {
		r.clips.take(fmt.Appendf(nil, `{"id":"%d","reason":"%s"}`, i, strings.Repeat("r", 5000)))
		r.log.take(fmt.Appendf(nil, `{"level":"WARN","msg":"%d"}`, i))
	}
	list, count := r.Clips(maxClips-1, 50)
	if len(list) != 1 || count != 2*maxClips || len(list[0].Reason) > maxText {
		t.Errorf("%d of %d clips", len(list), count)
	}
	if list, _ := r.Clips(math.MaxInt32, 50); len(list) != 0 {
		t.Errorf("%d clips at the end", len(list))
	}
	shown, warnings := r.Log(50)
	if len(shown) != 50 || shown[49].Text != fmt.Sprint(2*maxClips-1) || warnings != 2*maxClips {
		t.Errorf("%d lines, %d warnings", len(shown), warnings)
	}
}

// TestNow: the means are those of the last steps without the first one of the run, and a skipped step has no loss.
func TestNow(t *testing.T) {
	f := folder{t, t.TempDir()}
	f.add(rundir.MetricsFile, `{"step":1,"loss":0.5,"step_ms":9000,"input_wait_ms":0}`+"\n"+
		`{"step":2,"loss":2,"step_ms":10,"input_wait_ms":1}`+"\n"+
		`{"step":3,"loss":null,"step_ms":30,"input_wait_ms":2}`+"\n"+`no JSON`+"\n"+`{"loss":1}`+"\n")
	r := New(f.dir)
	r.Read(1 << 20)
	now := r.Now()
	if now.StepMs != 20 || now.WaitMs != 1.5 || now.Skipped != 1 || !math.IsNaN(now.Loss) || now.Best != 0.5 ||
		now.BestStep != 1 || now.First != 1 {
		t.Errorf("%+v", now)
	}
	steps, _, _ := r.Curves(0, 100, 100)
	for _, s := range steps {
		if s.Name == "step_ms" && (len(s.Bins) != 2 || s.Bins[0].First != 2) {
			t.Errorf("%+v", s)
		}
	}
}

// TestBrief: what a list of runs shows is read from the end of a long file, and after each change of it.
func TestBrief(t *testing.T) {
	f := folder{t, t.TempDir()}
	brief := Brief(f.dir)
	same := func(what string) {
		t.Helper()
		full := New(f.dir)
		for full.Read(1000) {
		}
		for brief.Read(1000) {
		}
		a, b := full.Now(), brief.Now()
		stepA, lossA, countA := full.Best()
		stepB, lossB, countB := brief.Best()
		if a.Last != b.Last || fmt.Sprint(a.Loss, stepA, lossA, countA) != fmt.Sprint(b.Loss, stepB, lossB, countB) ||
			full.Status() != brief.Status() || full.Mark().LastWrite != brief.Mark().LastWrite {
			t.Errorf("%s: %+v, step %d; in short %+v, step %d", what, a, stepA, b, stepB)
		}
		for _, c := range []curves{brief.steps.curves, brief.evaluations.curves} {
			for name, curve := range c.byName {
				if len(curve.Bins) > 2 {
					t.Errorf("%s: %s has %d bins", what, name, len(curve.Bins))
				}
			}
		}
	}
	same("nothing is there")
	f.write("metrics.jsonl", lines(1, 20_000, 1.5))
	if brief.metrics.end > int64(len(lines(1, 20_000, 1.5)))/2 {
		t.Fatal("the file is too short for the test")
	}
	same("a long run")
	if brief.Now().First < 2 {
		t.Error("all steps were read")
	}
	f.add("metrics.jsonl", lines(20_001, 20_100, 0.5))
	f.write("eval.jsonl", `{"step":10,"loss":2}`+"\n"+`{"step":20,"loss":1}`+"\n"+`{"step":30,"loss":3}`+"\n")
	same("it goes on")
	f.write("metrics.jsonl", lines(1, 15_000, 2.5))
	same("it was resumed from an earlier step")
	brief.Forget()
	if now := brief.Now(); now.Last != 0 || !math.IsNaN(now.Loss) || brief.Mark().Again == 0 {
		t.Errorf("after Forget: %+v, %+v", now, brief.Mark())
	}
	same("it was forgotten")
}

// TestSpeech: what evaluations have spoken is found by its step, with the means of the measures.
func TestSpeech(t *testing.T) {
	f := folder{t, t.TempDir()}
	for _, step := range []int{20, 40, 60} {
		for n := 1; n <= 2; n++ {
			f.add(rundir.SpokenFile, fmt.Sprintf(`{"step":%d,"clip":%d,"id":"A/%d","text":"سلام","language":"fa",`+
				`"file":"samples/step-0000%d/clip-%d.wav","reference":"../../etc/passwd","seconds":1.5,"ended":false,`+
				`"measures":{"mcd_db":%d}}`+"\n", step, n, n, step, n, step+n))
		}
	}
	f.add(rundir.EvalFile, `{"step":20,"loss":3,"mel_loss":1}`+"\n"+`{"step":40,"loss":2,"mel_loss":1}`+"\n"+
		`{"step":60,"loss":2.5,"mel_loss":1}`+"\n")
	r := New(f.dir)
	for r.Read(100) {
	}
	texts, steps, left := r.Texts()
	if len(texts) != 2 || !slices.Equal(steps, []int64{20, 40, 60}) || left != 0 || texts[1].Text != "سلام" ||
		texts[1].Reference != "" || texts[1].ID != "A/2" {
		t.Errorf("%+v, %v, %d", texts, steps, left)
	}
	takes := r.Takes(40)
	if len(takes) != 2 || takes[1].Text != 1 || takes[1].File != "samples/step-000040/clip-2.wav" || !takes[1].Cut ||
		takes[1].Measures[0].Value != 42 {
		t.Errorf("%+v", takes)
	}
	if takes := r.Takes(50); takes != nil {
		t.Errorf("%+v", takes)
	}
	_, evaluations, speech := r.Curves(0, 100, 100)
	if len(evaluations) != 2 || evaluations[0].Name != "loss" || len(speech) != 1 || speech[0].Bins[1].Mean() != 41.5 {
		t.Errorf("%+v, %+v", evaluations, speech)
	}
	if step, loss, n := r.Best(); step != 40 || loss != 2 || n != 3 {
		t.Errorf("best at %d: %g of %d", step, loss, n)
	}
}

// TestHostileRun: nothing in the folder of a stranger stops the reading, and no text is longer than its limit.
func TestHostileRun(t *testing.T) {
	for _, number := range []float64{0, 1e308, -1e308} {
		r := New(pagetest.HostileRun(t, number))
		for r.Read(4096) {
		}
		texts, _, _ := r.Texts()
		clips, _ := r.Clips(0, 100)
		if len(texts) == 0 || len(clips) == 0 {
			t.Errorf("%d texts, %d clips", len(texts), len(clips))
		}
		for _, text := range texts {
			if len(text.Text) > maxText || strings.ContainsAny(text.Text, "\x00\x1b\u202e") || text.Reference != "" {
				t.Errorf("%+v", text)
			}
		}
		r.Curves(math.MinInt64, math.MaxInt64, 500)
		r.Status()
	}
}

// FuzzNumbers: a line of JSON has the numbers that encoding/json finds.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{
		`{"step":1,"loss":null,"a":[1,{"b":2}],"c":"x,\"y\":3}","skipped":true}`, `{}`, `{"a":-1e5 , "b" : 2}`, `[1]`,
		`{"a":1e999}`, `{"a" 1}`, `{"a":}`, `{"`, `{"a":1`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := map[string]float64{}
		err := numbers([]byte(s), func(name []byte, v float64) { got[string(name)] = v })
		var all map[string]any
		if json.Unmarshal([]byte(s), &all) != nil || strings.ContainsAny(s, "\\\r\n\t") || all == nil {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		want := map[string]float64{}
		for name, v := range all {
			if n, ok := v.(float64); ok {
				want[name] = n
			} else if v == nil {
				want[name] = math.NaN()
			}
		}
		for name := range want {
			if strings.ContainsRune(name, '\ufffd') { // encoding/json mends what is not UTF-8
				return
			}
		}
		for name, v := range got {
			if w, ok := want[name]; math.IsNaN(v) && math.IsNaN(w) {
				delete(got, name)
				delete(want, name)
			} else if !ok && all[name] != nil {
				return // the name is there twice
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	})
}

// BenchmarkRead reads the lines of 100,000 steps.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	var text strings.Builder
	for step := range 100_000 {
		fmt.Fprintf(&text, `{"step":%d,"epoch":1,"loss":1.2345678901234567,"mel_loss":0.3456789,"stop_loss":0.02345,`+
			`"pitch_loss":0.1,"energy_loss":0.2,"lr":0.0029,"grad_norm":0.81,"step_ms":101.235,"input_wait_ms":0.402,`+
			`"samples":16,"frames":2210,"bucket":1}`+"\n", step+1)
	}
	if err := os.WriteFile(filepath.Join(dir, rundir.MetricsFile), []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r := New(dir)
		for r.Read(1 << 20) {
		}
	}
}
