package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// unevenStage returns flags of a run with a stage that takes so many milliseconds for a batch, and five times as long
// for one of five.
func unevenStage(t testing.TB, ms int) []string {
	t.Helper()
	folder := passPlugin(t, t.TempDir())
	if err := os.Symlink(filepath.Join(plugins, "features"), filepath.Join(folder, "features")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	pipeline := fmt.Sprintf(`pipeline:
  - {name: target, stage: logmel,
     inputs: {waveform: waveform, waveform_lengths: waveform_lengths},
     outputs: {mel_spectrograms: mel_spectrograms, mel_lengths: mel_lengths}}
  - {name: uneven, stage: pass, config: {sleep_ms: %d, long_ms: %d},
     inputs: {x: mel_spectrograms}, outputs: {x: mel_spectrograms}}
  - {name: reference, stage: logmel,
     inputs: {waveform: reference_waveform, waveform_lengths: reference_lengths},
     outputs: {mel_spectrograms: reference_mel_spectrograms, mel_lengths: reference_mel_lengths}}
`, ms, 5*ms)
	if err := os.WriteFile(file, []byte(pipeline), 0o666); err != nil {
		t.Fatal(err)
	}
	return []string{
		"--plugins", folder, "--config", file, "--buffer-size", "20", "--threads", "1", "--schedule", "constant",
	}
}

// TestAdaptive: with an uneven stage, depth and workers change, the report and the log say how, and nothing else
// changes: neither losses nor weights, also of a run that is continued.
func TestAdaptive(t *testing.T) {
	flags := unevenStage(t, 30)
	flags = append(flags, "--eval-every", "50", "--checkpoint-every", "40", "--keep-last", "0")
	train := func(out *bytes.Buffer, more ...string) string {
		t.Helper()
		dir, err := trainPico(t, console.Console{Out: out}, append(slices.Clone(flags), more...)...)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	var said bytes.Buffer
	fixed := train(new(bytes.Buffer), "--max-steps", "120", "--buffer-size", "2")
	adapted := train(&said, "--max-steps", "120", "--adaptive")
	parts := train(new(bytes.Buffer), "--max-steps", "47", "--adaptive")
	more := append(slices.Clone(flags), "--resume", parts, "--max-steps", "120", "--adaptive")
	if _, err := resume(t, more...); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{adapted, parts} {
		if got, want := losses(t, dir), losses(t, fixed); !slices.Equal(got, want) {
			t.Errorf("losses differ:\n%q\n%q", got, want)
		}
		a, b := checkpoints(t, dir), checkpoints(t, fixed)
		for _, name := range []string{"step-000080/params", "step-000120/params", "step-000120/optimizer"} {
			if file := name + ".safetensors"; a[file] != b[file] {
				t.Errorf("%s: %s differs", dir, file)
			}
		}
	}
	r := readReport(t, adapted)
	a := r.Adaptive
	if a == nil || a.Changes == 0 || a.Changes != len(a.List) || a.Depth.First != 2 || a.Depth.Limit != 20 ||
		a.Depth.Largest <= 2 || a.ReservedBytes*20 != a.LimitBytes*int64(a.Depth.Largest) {
		t.Fatalf("the report has %+v", a)
	}
	if text := said.String(); !strings.Contains(text, "ring of 2 to 20 slots of ") ||
		!strings.Contains(text, "batches ahead: ") {
		t.Errorf("the run says:\n%s", text)
	}
	log, err := os.ReadFile(filepath.Join(adapted, rundir.LogFile))
	if err != nil || strings.Count(string(log), `"msg":"adapted"`) != a.Changes {
		t.Errorf("%v, the log has not %d changes:\n%s", err, a.Changes, log)
	}
	if other := readReport(t, fixed); other.Adaptive != nil {
		t.Errorf("a run without --adaptive has %+v", other.Adaptive)
	}
	t.Logf("input stall %.3f with 2 slots, %.3f adapted: %+v", readReport(t, fixed).InputStallRatio, r.InputStallRatio,
		a)
}

// TestAdaptiveRanks: ranks that share a ring are refused, and train with rings of their own.
func TestAdaptiveRanks(t *testing.T) {
	r := rankTest{size: 2, dir: filepath.Join(t.TempDir(), "run")}
	r.flags = []string{
		"--graph", pico, "--batch-size", "4", "--max-steps", "3", "--eval-every", "1000", "--run-dir", r.dir,
		"--adaptive",
	}
	refused := 0
	for rank, err := range r.train(t) {
		if err == nil || !strings.Contains(err.Error(), "2 ranks of this machine share a ring") {
			t.Errorf("rank %d: %v", rank, err)
		}
		switch exit.Code(err) {
		case 2:
			refused++
		case 6: // the other one has said so before
		default:
			t.Errorf("rank %d: status %d", rank, exit.Code(err))
		}
	}
	if refused == 0 {
		t.Error("no rank has status 2")
	}
	r.on = func(rank int) string { return string(rune('a' + rank)) }
	for rank, err := range r.train(t) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// BenchmarkAdaptive reports the input stall, in percent, of runs with an uneven stage: of rings of a fixed length, and
// of one that is adapted, with its largest depth.
func BenchmarkAdaptive(b *testing.B) {
	for name, flags := range map[string][]string{
		"2 slots": {"--buffer-size", "2"}, "8 slots": {"--buffer-size", "8"}, "50 slots": {"--buffer-size", "50"},
		"adaptive": {"--buffer-size", "50", "--adaptive"},
	} {
		b.Run(name, func(b *testing.B) {
			uneven := append(unevenStage(b, 50), flags...)
			for b.Loop() {
				dir := filepath.Join(b.TempDir(), "run")
				if err := runFlags(b, console.Console{}, append([]string{
					"--graph", pico, "--batch-size", "8", "--run-dir", dir, "--max-steps", "800", "--epochs", "10000",
					"--eval-every", "100000", "--checkpoint-every", "0", "--log-every", "0",
				}, uneven...)...); err != nil {
					b.Fatal(err)
				}
				r, err := report.Read(filepath.Join(dir, rundir.ReportFile))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(100*r.InputStallRatio, "%stall")
				if r.Adaptive != nil {
					b.ReportMetric(float64(r.Adaptive.Depth.Largest), "slots")
				}
				b.Log(r.StepMs.Mean, r.PhasesMs, r.Adaptive)
			}
		})
	}
}
