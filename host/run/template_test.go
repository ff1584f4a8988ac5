package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
)

// TestTemplate runs the plugin that plugins new writes, with the first-party ones. It does nothing, so it changes no
// loss, also when it is killed, and doing something it does the same again.
func TestTemplate(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(plugins, "features"), filepath.Join(folder, "features")); err != nil {
		t.Fatal(err)
	}
	if err := catalogtest.Build(
		filepath.Join(folder, "mine", catalogtest.Program("my-plugin")), "../command/newplugin/template/go",
	); err != nil {
		t.Fatal(err)
	}
	with := func(drive string) string {
		file := filepath.Join(t.TempDir(), "config.yaml")
		text := `pipeline:
  - {name: clip, stage: my-plugin, config: {max_drive: ` + drive + `},
     inputs: {waveform: waveform, waveform_lengths: waveform_lengths}, outputs: {waveform: waveform}}
  - {name: target, stage: logmel, inputs: {waveform: waveform, waveform_lengths: waveform_lengths},
     outputs: {mel_spectrograms: mel_spectrograms, mel_lengths: mel_lengths}}
  - {name: reference, stage: logmel, inputs: {waveform: reference_waveform, waveform_lengths: reference_lengths},
     outputs: {mel_spectrograms: reference_mel_spectrograms, mel_lengths: reference_mel_lengths}}
`
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	flags := append([]string{"--plugins", folder}, eightSteps...)
	plain := strings.Join(losses(t, plainRun(t)), "\n")

	dir := trainKilled(t, append(flags, "--config", with("0"))...)
	if got := strings.Join(losses(t, dir), "\n"); got != plain {
		t.Errorf("a stage that does nothing changes the losses:\n%s\nwithout it:\n%s", got, plain)
	}

	clip := append(flags, "--config", with("8"))
	a, b := strings.Join(losses(t, mustTrain(t, clip...)), "\n"), strings.Join(losses(t, mustTrain(t, clip...)), "\n")
	if a == plain || a != b {
		t.Errorf("clipped losses are those without it: %v; of two runs the same: %v", a == plain, a == b)
	}
}
