package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

func openMetrics(t testing.TB, path string, after int64) *Metrics {
	t.Helper()
	m, err := OpenMetrics(path, []string{"mel_loss", "stop_loss"}, after, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// events is what a sink takes.
func events(list ...event.Event) []event.Event { return list }

func metricsStep(step int64) *event.Step {
	return &event.Step{
		Step: step, Epoch: 1, Bucket: 2, Loss: 1 / float64(step), Metrics: []float64{0.5, 0.25}, LR: 1e-5,
		GradNorm: 0.8125, Rows: []int32{7, 3, 1}, Frames: 412,
		Times: event.Times{Time: 101234567 * time.Nanosecond, InputWait: 1500 * time.Microsecond},
	}
}

func TestMetricsLine(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		change func(w *event.Step)
		want   string
	}{
		{"plain", func(*event.Step) {},
			`{"step":4,"epoch":1,"loss":0.25,"mel_loss":0.5,"stop_loss":0.25,"lr":1e-05,"grad_norm":0.8125,"step_ms":101.235,"input_wait_ms":1.500,"samples":3,"frames":412,"bucket":2}`},
		{"skipped", func(w *event.Step) { w.Skipped, w.GradNorm = true, math.Inf(1) },
			`{"step":4,"epoch":1,"loss":null,"mel_loss":null,"stop_loss":null,"lr":1e-05,"grad_norm":null,"step_ms":101.235,"input_wait_ms":1.500,"samples":3,"frames":412,"bucket":2,"skipped":true}`},
		{"players", func(w *event.Step) {
			w.Players = []event.Player{{Name: "judge", LR: 0.5, GradNorm: 2}, {Name: "maker", GradNorm: w.GradNorm}}
		},
			`{"step":4,"epoch":1,"loss":0.25,"mel_loss":0.5,"stop_loss":0.25,"lr":1e-05,"lr.judge":0.5,"grad_norm":0.8125,"grad_norm.judge":2,"step_ms":101.235,"input_wait_ms":1.500,"samples":3,"frames":412,"bucket":2}`},
		{"skipped player", func(w *event.Step) {
			w.Skipped, w.Players = true,
				[]event.Player{{Name: "judge", GradNorm: nan, Skipped: true}, {Name: "maker", GradNorm: w.GradNorm}}
		},
			`{"step":4,"epoch":1,"loss":null,"mel_loss":null,"stop_loss":null,"lr":1e-05,"lr.judge":0,"grad_norm":0.8125,"grad_norm.judge":null,"step_ms":101.235,"input_wait_ms":1.500,"samples":3,"frames":412,"bucket":2,"skipped":true,"skipped_players":["judge"]}`},
		{"one metric is not finite", func(w *event.Step) { w.Metrics[1] = nan },
			`{"step":4,"epoch":1,"loss":0.25,"mel_loss":0.5,"stop_loss":null,"lr":1e-05,"grad_norm":0.8125,"step_ms":101.235,"input_wait_ms":1.500,"samples":3,"frames":412,"bucket":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics.jsonl")
			m, w := openMetrics(t, path, 0), metricsStep(4)
			c.change(w)
			if err := m.Take(events(w)); err != nil {
				t.Fatal(err)
			}
			if got := read(t, path); got != c.want+"\n" {
				t.Errorf("got  %swant %s", got, c.want)
			}
		})
	}
}

// A reader gets back the very bits of the loss.
func TestMetricsKeepEveryBit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m, w := openMetrics(t, path, 0), metricsStep(1)
	w.Loss = float64(float32(0.1)) // as a graph gives it
	if err := m.Take(events(w)); err != nil {
		t.Fatal(err)
	}
	var got struct{ Loss float64 }
	if err := json.Unmarshal([]byte(read(t, path)), &got); err != nil || got.Loss != w.Loss {
		t.Errorf("loss %v, %v; want %v", got.Loss, err, w.Loss)
	}
}

func TestMetricsCutBack(t *testing.T) {
	line := func(step int, loss string) string {
		return fmt.Sprintf(`{"step":%d,"loss":%s,"samples":2,"frames":10}`+"\n", step, loss)
	}
	three := line(1, "4") + line(2, "null") + line(3, "2")
	for _, c := range []struct {
		name, content string
		after         int64
		want          string
		history       History
	}{
		{"a new run", "", 0, "", History{}},
		{"a new run in an old folder", three, 0, "", History{}},
		{"all stay", three, 3, three, History{
			Steps: 3, Skipped: 1, Samples: 6, Frames: 30, First: 4, Last: 2, Best: 2,
		}},
		{
			"the last goes", three, 2, line(1, "4") + line(2, "null"),
			History{Steps: 2, Skipped: 1, Samples: 4, Frames: 20, First: 4, Last: 4, Best: 4},
		},
		{
			"torn last line", three + `{"step":4,"lo`, 9, three,
			History{Steps: 3, Skipped: 1, Samples: 6, Frames: 30, First: 4, Last: 2, Best: 2},
		},
		{
			"first steps skipped", line(1, "null") + line(2, "-1") + line(3, "5"), 3,
			line(1, "null") + line(2, "-1") + line(3, "5"),
			History{Steps: 3, Skipped: 1, Samples: 6, Frames: 30, First: -1, Last: 5, Best: -1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics.jsonl")
			write(t, path, c.content)
			m := openMetrics(t, path, c.after)
			if got := read(t, path); got != c.want {
				t.Errorf("kept %q, want %q", got, c.want)
			}
			if m.History() != c.history {
				t.Errorf("history %+v, want %+v", m.History(), c.history)
			}
			if err := m.Take(events(metricsStep(c.after + 1))); err != nil {
				t.Fatal(err)
			}
			if got := read(t, path); !strings.HasPrefix(got, c.want+`{"step":`) || !strings.HasSuffix(got, "}\n") {
				t.Errorf("after another line: %q", got)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name, content string
		metrics       []string
		want          string
	}{
		{"damage in the middle", "{\"step\":1,\"loss\":1}\n\x00\x00\n", nil, "line 2"},
		{"another program's file", "{\"loss\":1}\n", nil, `line 1: "step" is missing`},
		{"a line without end", strings.Repeat("x", maxLine+1), nil, "line 1: more than 65536 bytes"},
		{"metric with a fixed name", "", []string{"mel_loss", "lr"}, `metric "lr"`},
		{"metric twice", "", []string{"mel_loss", "mel_loss"}, `metric "mel_loss"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics.jsonl")
			write(t, path, c.content)
			for _, open := range []func() error{
				func() error { _, err := OpenMetrics(path, c.metrics, 9, nil); return err },
				func() error { _, err := OpenEvaluations(path, c.metrics, 9, nil); return err },
			} {
				if err := open(); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want one with %q", err, c.want)
				}
			}
			if got := read(t, path); got != c.content {
				t.Errorf("the file was changed to %q", got)
			}
		})
	}
	pipe := filepath.Join(t.TempDir(), "metrics.jsonl")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMetrics(pipe, nil, 0, nil); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("a pipe: %v", err)
	}
	_, err := OpenMetrics(filepath.Join(t.TempDir(), "none", "metrics.jsonl"), nil, 0, nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// /dev/full takes any number of lines and fails each, as a full disk does.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	m := &Metrics{lines: &lines{limit: maxLine, path: "/dev/full", file: files.From(full)}}
	err = m.Take(events(metricsStep(56), metricsStep(57)))
	var hint interface{ Hint() string }
	if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &hint) {
		t.Fatalf("error %v, want ENOSPC with a hint", err)
	}
	for _, want := range []string{"/dev/full", "step 57"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if err := m.Close(); err != nil {
		t.Errorf("Close says again what is known: %v", err)
	}
}

// TestDiskRecovers: lines wait for a disk that is full for some seconds, and none is lost.
func TestDiskRecovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	good, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := &Metrics{lines: &lines{limit: maxLine, path: path, file: files.From(full), wait: files.NewPatience(time.Minute,
		nil)}}
	defer m.Close()
	synctest.Test(t, func(t *testing.T) {
		began, taken := time.Now(), make(chan error)
		go func() { taken <- m.Take(events(metricsStep(1), metricsStep(2))) }()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		// the disk has space again
		if err := syscall.Dup3(int(good.Fd()), int(full.Fd()), syscall.O_CLOEXEC); err != nil {
			t.Error(err)
		}
		if err := <-taken; err != nil || time.Since(began) > 8*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
	if got := strings.Count(read(t, path), "\n"); got != 2 {
		t.Errorf("%d lines, want 2", got)
	}
}

// A file size limit makes a write of several lines stop in the middle of one, as a disk that fills up does.
func TestFailedWriteLeavesWholeLines(t *testing.T) {
	unlimited, path := filepath.Join(t.TempDir(), "metrics.jsonl"), filepath.Join(t.TempDir(), "metrics.jsonl")
	if m := openMetrics(t, unlimited, 0); m.Take(events(metricsStep(1), metricsStep(2), metricsStep(3))) != nil {
		t.Fatal("the lines cannot be written")
	}
	whole := read(t, unlimited)
	m := openMetrics(t, path, 0)
	if err := m.Take(events(metricsStep(1))); err != nil {
		t.Fatal(err)
	}

	signal.Ignore(syscall.SIGXFSZ) // it would end the process
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{
		Cur: uint64(len(whole)) + 20, Max: limit.Max,
	}); err != nil {
		t.Fatal(err)
	}
	err := m.Take(events(metricsStep(2), metricsStep(3), metricsStep(4), metricsStep(5))) // 4 is torn
	if back := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); back != nil {
		t.Fatal(back)
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Errorf("error %v, want EFBIG", err)
	}
	if got := read(t, path); got != whole {
		t.Errorf("after the failure the file holds %q", got)
	}
}

// A line that could not be read again ends the run. The lines before it stay.
func TestLineTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	m := openMetrics(t, path, 0)
	m.lines.limit = len(m.appendLine(nil, metricsStep(4)))
	err := m.Take(events(metricsStep(1), &event.Message{}, metricsStep(4), metricsStep(1e9), metricsStep(2)))
	if err == nil || !strings.Contains(err.Error(), "step 1000000000") {
		t.Errorf("error %v", err)
	}
	if got, want := read(t, path), string(
		m.appendLine(m.appendLine(nil, metricsStep(1)), metricsStep(4)),
	); got != want {
		t.Errorf("the file holds %q, want the lines before it", got)
	}
}

func TestMetricsDoNotAllocate(t *testing.T) {
	m, w := openMetrics(t, filepath.Join(t.TempDir(), "metrics.jsonl"), 0), metricsStep(1)
	list := events(w)
	if n := testing.AllocsPerRun(100, func() {
		w.Step++
		if err := m.Take(list); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations per line", n)
	}
}

func TestCloseTwice(t *testing.T) {
	m := openMetrics(t, filepath.Join(t.TempDir(), "metrics.jsonl"), 0)
	if err := errors.Join(m.Sync(), m.Close(), m.Close()); err != nil {
		t.Error(err)
	}
}

func TestEvaluations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eval.jsonl")
	names := []string{"mel_loss"}
	for _, after := range []int64{0, 100} { // the second time the run is resumed before the last evaluation
		e, err := OpenEvaluations(path, names, after, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []int64{100, 200} {
			if step <= after {
				continue
			}
			if err := e.Take(events(metricsStep(1), &event.Evaluation{
				Step: step, Loss: math.NaN(), Metrics: []float64{0.5}, Samples: 64, Time: 1200 * time.Millisecond,
			})); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(e.Sync(), e.Close()); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"step":100,"loss":null,"mel_loss":0.5,"samples":64,"eval_ms":1200.000}
{"step":200,"loss":null,"mel_loss":0.5,"samples":64,"eval_ms":1200.000}
`
	if got := read(t, path); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func FuzzOpenMetrics(f *testing.F) {
	f.Add([]byte(`{"step":1,"loss":0.5,"samples":2}`+"\n"+`{"step":2,"loss":null,"skipped":true}`+"\n"), int64(1))
	f.Add([]byte(`{"step":1}`), int64(1))
	f.Add([]byte("\n\x00{"), int64(3))
	f.Add([]byte(`{"step":9e99}`+"\n"), int64(3))
	f.Fuzz(func(t *testing.T, content []byte, after int64) {
		path := filepath.Join(t.TempDir(), "metrics.jsonl")
		write(t, path, string(content))
		m, err := OpenMetrics(path, nil, after, nil)
		if err != nil {
			if got := read(t, path); got != string(content) {
				t.Fatalf("refused, but changed to %q", got)
			}
			return
		}
		defer m.Close()
		kept := read(t, path)
		if !strings.HasPrefix(string(content), kept) || kept != "" && !strings.HasSuffix(kept, "\n") {
			t.Fatalf("kept %q", kept)
		}
		again, err := OpenMetrics(path, nil, after, nil) // what stays once stays again
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if !reflect.DeepEqual(again.History(), m.History()) || read(t, path) != kept {
			t.Fatalf("opened again: %+v, want %+v", again.History(), m.History())
		}
	})
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestNormalStepsOfBefore: a resumed run knows the last normal step before it, and what its loss was like.
func TestNormalStepsOfBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	line := func(step int, loss string) string {
		return fmt.Sprintf(`{"step":%d,"loss":%s,"samples":4,"frames":9}`+"\n", step, loss)
	}
	text := line(1, "2.5") + line(2, "2") + line(3, "3e9") + line(4, "null") + line(5, "2")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := OpenMetrics(path, nil, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d := m.Divergence()
	if d.Normal() != 2 {
		t.Errorf("step %d, want 2", d.Normal())
	}
	if step := (&event.Step{Step: 5, Loss: 1e9, Rows: []int32{1}}); d.Step(step, func(string, ...any) {}) {
		t.Error("an exploded loss is normal in another process")
	}
}
