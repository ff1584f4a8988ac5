package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
)

// TestSlowStageIsNamed: when a stage is slower than training, the report says which, and what to change.
func TestSlowStageIsNamed(t *testing.T) {
	folder := passPlugin(t, t.TempDir())
	if err := os.Symlink(filepath.Join(plugins, "features"), filepath.Join(folder, "features")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	pipeline := `pipeline:
  - {name: target, stage: logmel,
     inputs: {waveform: waveform, waveform_lengths: waveform_lengths},
     outputs: {mel_spectrograms: mel_spectrograms, mel_lengths: mel_lengths}}
  - {name: molasses, stage: pass, config: {sleep_ms: 400}, inputs: {x: mel_spectrograms}, outputs: {x: mel_spectrograms}}
  - {name: reference, stage: logmel,
     inputs: {waveform: reference_waveform, waveform_lengths: reference_lengths},
     outputs: {mel_spectrograms: reference_mel_spectrograms, mel_lengths: reference_mel_lengths}}
`
	if err := os.WriteFile(file, []byte(pipeline), 0o666); err != nil {
		t.Fatal(err)
	}
	dir, err := trainPico(t, console.Console{}, "--plugins", folder, "--config", file, "--max-steps", "8",
		"--model-start-delay", "0.1")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Stall   float64 `json:"input_stall_ratio"`
		Verdict struct {
			Bottleneck string
			Advice     []string
		}
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Bottleneck != "molasses" || r.Stall < 0.3 ||
		!strings.Contains(strings.Join(r.Verdict.Advice, " "), "molasses") {
		t.Errorf("%+v", r)
	}
}
