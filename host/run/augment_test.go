package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var augmented = []string{"--max-steps", "8", "--checkpoint-every", "4", "--augment", "waveaug,specaugment"}

// TestAugmentationDrawsDependOnTheRowAlone: any number of processes, and a restart, give the same bits.
func TestAugmentationDrawsDependOnTheRowAlone(t *testing.T) {
	want := mustTrain(t, augmented...)
	const workers = "augment=3,features=2"
	sameRun(t, workers, want,
		mustTrain(t, append(slices.Clone(augmented), "--plugin-workers", workers, "--num-workers", "3")...))
	dir := trainKilled(t, augmented...)
	sameRun(t, "restarted", want, dir)

	plain := lossesOf(t, plainRun(t))
	if first := lossesOf(t, want)[0]; first == plain[0] {
		t.Errorf("augmentation changes nothing: loss %v", first)
	}
}

// TestAugmentationWithProbabilityZero changes no bit of a run.
func TestAugmentationWithProbabilityZero(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	pipeline := `pipeline:
  - {name: waveaug, stage: waveaug, config: {gain_probability: 0, noise_probability: 0, polarity_probability: 0},
     inputs: {waveform: waveform, waveform_lengths: waveform_lengths}, outputs: {waveform: waveform}}
  - {name: target, stage: logmel,
     inputs: {waveform: waveform, waveform_lengths: waveform_lengths},
     outputs: {mel_spectrograms: mel_spectrograms, mel_lengths: mel_lengths}}
  - {name: specaugment, stage: specaugment, config: {probability: 0},
     inputs: {mel_spectrograms: mel_spectrograms, mel_lengths: mel_lengths}, outputs: {mel_spectrograms: mel_spectrograms}}
  - {name: reference, stage: logmel,
     inputs: {waveform: reference_waveform, waveform_lengths: reference_lengths},
     outputs: {mel_spectrograms: reference_mel_spectrograms, mel_lengths: reference_mel_lengths}}
`
	if err := os.WriteFile(file, []byte(pipeline), 0o666); err != nil {
		t.Fatal(err)
	}
	want := losses(t, plainRun(t))
	got := losses(t, mustTrain(t, append(slices.Clone(eightSteps), "--config", file)...))
	if strings.Join(want, "\n") != strings.Join(got, "\n") {
		t.Errorf("losses with idle augmentations:\n%s\nwithout:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
