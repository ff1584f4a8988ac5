package speech

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/speak/samples"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/synthesizetest"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

// run is a run of a model that can be made to end its speech at once, or never.
type run struct {
	*Speech
	bundle *ortgraphs.Bundle
	lines  bytes.Buffer // of the console
	log    bytes.Buffer
	loop   train.Loop
	bus    *event.Bus
	config samples.Config
}

func newRun(t *testing.T) *run {
	t.Helper()
	r := &run{bus: event.NewBus()}
	dir := t.TempDir()
	folder := filepath.Join(dir, "bundle")
	if err := synthesizetest.Write(
		folder, "../../../ortgraphs/testdata/pico", "../../data/dataset/testdata/voicebpe/tokenizer.json",
	); err != nil {
		t.Fatal(err)
	}
	r.bundle = must(ortgraphs.Load(folder))
	r.bundle.Manifest.Synthesis.Longest = 100_000
	weights := must(r.bundle.Weights())
	t.Cleanup(func() { weights.Close() })
	data := must(dataset.Open(t.Context(), dataset.Config{
		Dir: must(dataset.Sample(filepath.Join(dir, "cache"))), Split: dataset.Eval, SampleRate: 22050,
	}))
	list := must(samples.Clips(1, r.bundle, data, texts.Rules{}))
	half := *list.Clips[0].Clip // half a second of it, which a model that never ends is as long as
	half.Frames, half.Samples = half.FileRate/2, 22050/2
	c := &list.Clips[0]
	c.Clip, c.Voice, c.Text = &half, &half, c.Text.Within(0.5)
	console := report.NewConsole(&r.lines, &r.lines, nil)
	r.bus.Offer("console", console, func(string) {})
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	r.config = samples.Config{
		List: list, Bundle: r.bundle, Weights: weights, Device: new(device.Device), Threads: 1, Run: dir, Log: log,
		Bus: r.bus, Spent: func(_, _ time.Time) {},
	}
	r.Speech = &Speech{
		speaker: must(samples.Open(t.Context(), r.config)), bus: r.bus, log: log, lowest: math.NaN(),
		leads: true, by: judged{name: "spoken.length_ratio", spoken: measured.LengthRatio},
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// TestSpeechBreaks: the loss falls at every evaluation, and at the third one the speech breaks down to nearly nothing.
// The line, the warning and the report say so there, and --best-by keeps the evaluation before.
func TestSpeechBreaks(t *testing.T) {
	r := newRun(t)
	r.judge(&r.loop, nil)
	stop := &r.bundle.Manifest.Synthesis.Codes.Stop
	var best *train.Best
	for i, ends := range []bool{false, false, true, true} {
		if *stop = 100; ends { // 100 never comes
			*stop = synthesizetest.Stop
		}
		e := &event.Evaluation{Step: int64(i + 1), Loss: float64(9 - i)}
		if v := r.loop.Policy.Judge(e); best == nil || v < best.Value {
			best = &train.Best{Step: e.Step, Loss: e.Loss, Value: v}
		}
		r.Evaluated(e)
		const warning = "speech breaks although the loss is the lowest so far: clip 1 has 0.0 s"
		if log := r.log.String(); (strings.Contains(log, warning) && strings.Contains(log, "step=3")) != (i >= 2) {
			t.Errorf("evaluation %d: %s", i+1, &r.log)
		}
	}
	if err := r.bus.Close(); err != nil {
		t.Fatal(err)
	}
	if best.Step != 1 || best.Value > 0.01 {
		t.Errorf("the best is %+v", best)
	}
	got := r.Best(best)
	if got.Step != 1 || got.By != "spoken.length_ratio" || got.Value == nil || math.Abs(float64(*got.Value)-1) > 0.01 {
		t.Errorf("the report has %+v", got)
	}
	lines := slices.DeleteFunc(strings.Split(r.lines.String(), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "spoken ")
	})
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "spoken 1: 0.5 s of 0.5, cut  MCD ") ||
		!strings.HasPrefix(lines[2], "spoken 1: 0.0 s of 0.5  MCD ") {
		t.Errorf("%s", &r.lines)
	}
	m := r.Report().Measures[measured.LengthRatio]
	if m.BestStep != 1 || m.LastStep != 4 || m.Last > 0.1 {
		t.Errorf("%+v", m)
	}
}

// TestJudgeResumes: a resumed run compares with the value of its best evaluation. Without the lines of that, the next
// one is better.
func TestJudgeResumes(t *testing.T) {
	r := newRun(t)
	r.bundle.Manifest.Synthesis.Codes.Stop = 100
	r.Evaluated(&event.Evaluation{Step: 1, Loss: 3})
	r.loop.Progress.Best = &train.Best{Step: 1, Loss: 3, Value: 3}
	if r.judge(&r.loop, nil); r.loop.Progress.Best.Value > 0.01 {
		t.Errorf("%+v", r.loop.Progress.Best)
	}
	r.loop.Progress.Best.Step = 7
	if r.judge(&r.loop, nil); !math.IsInf(r.loop.Progress.Best.Value, 1) || r.Best(r.loop.Progress.Best).Value != nil {
		t.Errorf("without its lines: %+v", r.loop.Progress.Best)
	}
	path := filepath.Join(t.TempDir(), "eval.jsonl")
	if err := os.WriteFile(path, []byte(`{"step":2,"loss":3,"mel_loss":0.5,"samples":4}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	evaluations := must(report.OpenEvaluations(path, []string{"mel_loss"}, 2, nil))
	defer evaluations.Close()
	r.by = judged{name: "mel_loss"}
	r.loop.Progress.Best.Step = 2
	if r.judge(&r.loop, evaluations); r.loop.Progress.Best.Value != 0.5 {
		t.Errorf("by a metric: %+v", r.loop.Progress.Best)
	}
	if v := r.loop.Policy.Judge(&event.Evaluation{Metrics: []float64{0.25}}); v != 0.25 {
		t.Errorf("a metric is judged %g", v)
	}
	r.loop.Policy.Judge, r.by = nil, judged{}
	if r.judge(&r.loop, evaluations); r.loop.Policy.Judge != nil || r.Best(r.loop.Progress.Best).By != "" {
		t.Error("the loss is judged by something else")
	}
}

// TestPace: clips that the user has not asked for are spoken at the first evaluation, at the last one, and where that
// takes at most a tenth of the training. A line says so once, and the report counts the others.
func TestPace(t *testing.T) {
	r := newRun(t)
	r.pace.unasked, r.final = true, func(step int64) bool { return step == 9 }
	var spoken []int64
	for step := int64(1); step <= 9; step++ {
		r.Step(time.Second)
		if step == 7 {
			r.Step(time.Hour)
		}
		before := len(r.Report().Steps)
		r.Evaluated(&event.Evaluation{Step: step, Loss: 3})
		if len(r.Report().Steps) > before {
			spoken = append(spoken, step)
			r.pace.spoke(time.Second)
		}
	}
	if err := r.bus.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(spoken, []int64{1, 7, 8, 9}) || r.Report().Skipped != 5 {
		t.Errorf("spoken at %v, %d skipped", spoken, r.Report().Skipped)
	}
	const said = "this evaluation speaks no clips, because speaking would take more than"
	if n := strings.Count(r.lines.String(), said); n != 1 {
		t.Errorf("%d lines say so: %s", n, &r.lines)
	}
}
