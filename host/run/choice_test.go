package run

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/choice"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func at(points ...[2]float64) *manifest.Probability { return &manifest.Probability{Points: points} }

// loud is waveaug with a gain for each row that it gets.
func loud(name string, p *manifest.Probability) manifest.StageInstance {
	return manifest.StageInstance{
		Name: name, Stage: "waveaug", P: p, Outputs: map[string]string{"waveform": "waveform"},
		Config: map[string]any{"gain_probability": 1, "noise_probability": 1},
		Inputs: map[string]string{"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
	}
}

// masked is specaugment of the target.
func masked(p *manifest.Probability) manifest.StageInstance {
	ports := map[string]string{"mel_spectrograms": "mel_spectrograms"}
	return manifest.StageInstance{
		Name: "masks", Stage: "specaugment", P: p, Outputs: ports,
		Inputs: map[string]string{"mel_spectrograms": "mel_spectrograms", "mel_lengths": "mel_lengths"},
	}
}

// before writes a config file with the pipeline of pico after these entries, and specaugment in the end if it is asked
// for.
func before(t *testing.T, masks *manifest.Probability, entries ...manifest.StageInstance) string {
	return picoPipeline(t, func(p []manifest.StageInstance) []manifest.StageInstance {
		p = append(entries, p...)
		if masks != nil {
			p = append(p, masked(masks))
		}
		return p
	})
}

// mixture has an augmentation with p, a group, and one with a schedule.
func mixture(t *testing.T) string {
	return before(t, at([2]float64{2, 0}, [2]float64{12, 1}), loud("first", at([2]float64{0, 0.5})),
		manifest.StageInstance{
			Name: "colour", P: at([2]float64{0, 0.8}),
			OneOf: []manifest.StageInstance{loud("red", nil), loud("blue", at([2]float64{0, 0.5}))},
		})
}

// TestChosenAugmentations: however a run is made, its rows get the same augmentations and bits.
func TestChosenAugmentations(t *testing.T) {
	flags := append(slices.Clone(reference), "--config", mixture(t), "--accumulate", "2")
	want := mustTrain(t, flags...)
	for _, more := range [][]string{
		{"--plugin-workers", "augment=2,features=2", "--num-workers", "3"}, {"--plugin-workers", "augment=4"},
		{"--verify-plugins"}, {"--feature-cache", t.TempDir()}, {"--buffer-size", "2", "--slots", "2"},
	} {
		sameRun(t, strings.Join(more, " "), want, mustTrain(t, append(slices.Clone(flags), more...)...))
	}
	dir := trainKilled(t, flags...)
	sameRun(t, "plugins killed", want, dir)
	dir, done := interrupted(t, 8, 16, append(slices.Clone(flags), "--log-every", "1")...)
	if _, err := resumePico(t, dir, "--num-workers", "3"); err != nil {
		t.Fatal(err)
	}
	if done%6 != 0 && done%5 != 0 {
		if err := os.RemoveAll(filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%06d", done))); err != nil {
			t.Fatal(err)
		}
	}
	sameRun(t, fmt.Sprint("resumed after step ", done), want, dir)

	r := readReport(t, want)
	var names []string
	for _, a := range r.Augmentations {
		if names = append(names, a.Name+" "+a.Group); a.Given == 0 || a.Left == 0 || a.Given+a.Left > 2*r.Samples {
			t.Errorf("%+v of %d samples", a, r.Samples)
		}
	}
	if want := []string{"first ", "red colour", "blue colour", "masks "}; !slices.Equal(names, want) {
		t.Errorf("the report has %q, want %q", names, want)
	}
}

// spectrograms makes a run of so many rows and returns those of its clips in the first epoch, by clip.
func spectrograms(t *testing.T, steps, size int, config string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	batches := filepath.Join(dir, "batches")
	if err := os.Mkdir(batches, 0o777); err != nil {
		t.Fatal(err)
	}
	mustTrain(t, "--max-steps", fmt.Sprint(steps), "--batch-size", fmt.Sprint(size), "--val-share", "0", "--config",
		config, "--debug-dir", dir)
	text, err := os.ReadFile(filepath.Join(dir, "ledger.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Step    int
			Batches []struct{ Rows []string }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.Open(filepath.Join(batches, fmt.Sprintf("%06d-00.safetensors", l.Step)))
		if err != nil {
			t.Fatal(err)
		}
		lengths := make([]byte, 4*size)
		mel, _ := f.Tensor("mel_spectrograms")
		row := mel.Shape[1] * mel.Shape[2] * 4
		data := make([]byte, size*row)
		if err := f.Read("mel_lengths", lengths); err != nil {
			t.Fatal(err)
		}
		if err := f.Read("mel_spectrograms", data); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for i, id := range l.Batches[0].Rows {
			n := int(binary.LittleEndian.Uint32(lengths[4*i:])) * mel.Shape[2] * 4
			if _, later := all[id]; !later && id != "" {
				all[id] = string(data[i*row:][:n])
			}
		}
	}
	return all
}

// TestChosenRowsHaveTheirBits: a row that an augmentation is chosen for has the bits that it has where all rows get it,
// a row that is left out those that it has without it, in batches of other sizes and beside other entries.
func TestChosenRowsHaveTheirBits(t *testing.T) {
	half := at([2]float64{0, 0.5})
	without, always := spectrograms(t, 3, 4, before(t, nil)), spectrograms(t, 3, 4, before(t, nil, loud("first", nil)))
	in := &catalog.Instance{Name: "first", P: half}
	for name, got := range map[string]map[string]string{
		"batches of 4": spectrograms(t, 3, 4, before(t, nil, loud("first", half))),
		"batches of 3": spectrograms(t, 4, 3, before(t, nil, loud("first", half))),
		"with another entry": spectrograms(t, 3, 4,
			before(t, nil, loud("none", at([2]float64{0, 0})), loud("first", half))),
	} {
		given, left := 0, 0
		for id, bits := range got {
			if without[id] == "" {
				continue // not in the first epoch of the others
			}
			want := without[id]
			if left++; (choice.Row{Seed: 1, ID: id}).Gets(in) {
				left--
				given++
				want = always[id]
			}
			if bits != want {
				t.Errorf("%s: clip %s has other bits: as without %v, as always %v", name, id, bits == without[id],
					bits == always[id])
			}
		}
		if given < 2 || left < 2 {
			t.Errorf("%s: %d rows are given, %d left", name, given, left)
		}
	}
}

// TestChoicesAreOfTheRun: the banner has them in short, and a resumed run with another p is refused by name.
func TestChoicesAreOfTheRun(t *testing.T) {
	var out bytes.Buffer
	dir, err := trainPico(t, console.Console{Out: &out}, "--max-steps", "2", "--config", mixture(t))
	if err != nil {
		t.Fatal(err)
	}
	const banner = `
  pipeline     decode -> first 50 % -> one of (red, blue 50 %) 80 % -> target
               -> reference -> masks 0 to 100 % -> transfer -> train
`
	if !strings.Contains(out.String(), banner) {
		t.Errorf("%s\nlacks%s", &out, banner)
	}
	_, err = resumePico(t, dir, "--max-steps", "3", "--config", before(t, nil, loud("first", at([2]float64{0, 0.25}))))
	if err == nil || !strings.Contains(err.Error(), "augment/first/p: 0.5 -> 0.25") ||
		!strings.Contains(exit.Hint(err), "--allow augment") {
		t.Errorf("%v (%s)", err, exit.Hint(err))
	}
}

// TestChoicesRefused: the error names the file.
func TestChoicesRefused(t *testing.T) {
	file := picoPipeline(t, func(p []manifest.StageInstance) []manifest.StageInstance {
		p[0].P = at([2]float64{0, 0.5})
		return p
	})
	for _, tt := range []struct{ flags, want, hint string }{
		{
			"--config " + file, file + `: pipeline: instance "target": it has p, but stage "logmel" is of kind ` +
				"preprocess: without it, a row has no mel_spectrograms, mel_lengths", "leave p out",
		},
		{
			"--augment waveaug:30", "--augment waveaug:30: 30 is no probability of 0 to 1",
			"for 30 percent, write waveaug:0.3",
		},
	} {
		_, err := trainPico(t, console.Console{}, append(strings.Fields(tt.flags), "--max-steps", "1")...)
		if err == nil || exit.Code(err) != 2 || err.Error() != tt.want || exit.Hint(err) != tt.hint {
			t.Errorf("%s: %v (%s)\nwant %s (%s)", tt.flags, err, exit.Hint(err), tt.want, tt.hint)
		}
	}
}
