package plugintry

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"image/png"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/choice"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/picture"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

const pico = "../../../ortgraphs/testdata/pico"

// buildPlugins builds the first-party plugins and the faulty one, of which only its gain is wanted.
func buildPlugins(t *testing.T) string {
	t.Helper()
	all := t.TempDir()
	for source, program := range map[string]string{"features": "features", "testdata/faulty": "faulty"} {
		if err := catalogtest.Build(
			filepath.Join(all, program, catalogtest.Program(program)), filepath.Join("../../../plugins", source),
		); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// wave writes a WAV file of a sawtooth.
func wave(t *testing.T, rate int) string {
	t.Helper()
	var samples []float32
	for i := range 4000 {
		samples = append(samples, float32(i%200-100)/128)
	}
	file := filepath.Join(t.TempDir(), "A-0001.wav")
	if _, err := writeSound(file, samples, samples, rate); err != nil {
		t.Fatal(err)
	}
	return file
}

// draw is the first number of a row's generator.
func draw(key [16]byte) float64 {
	var seed [32]byte
	copy(seed[:], key[:])
	return rand.New(rand.NewChaCha8(seed)).Float64()
}

func TestTry(t *testing.T) {
	plugins, dir := buildPlugins(t), t.TempDir()
	clip := wave(t, 22050)
	try := func(stage, out string, change func(*Options)) (string, error) {
		o := Options{
			Stages: strings.Split(stage, ","), Clip: clip, Out: dir + "/" + out, Epoch: 1, Step: 1, Count: 1,
			Seed: 1, Plugins: plugins, Graph: pico, CacheDir: filepath.Join(dir, "cache"),
		}
		if change != nil {
			change(&o)
		}
		var text bytes.Buffer
		err := Command(t.Context(), &text, o)
		return text.String(), err
	}

	t.Run("a waveform", func(t *testing.T) {
		text, err := try("mix", "heard.wav", func(o *Options) { o.Count = 2 })
		if err != nil || !strings.Contains(
			text, "mix, epoch 2: "+filepath.Join(dir, "heard-2.wav")+"; 0.18 s -> 0.18 s, peak 0.781 -> 0.",
		) {
			t.Fatalf("%q, %v", text, err)
		}
		// The gain is that of a run: it depends on the seed, the epoch, the clip and the instance.
		for epoch, file := range []string{"heard-1.wav", "heard-2.wav"} {
			key := dataset.RowKey(1, epoch, "A-0001", "mix")
			gain := 1 - 0.5*draw(key)
			after, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			first := float64(int16(binary.LittleEndian.Uint16(after[44:]))) / 32768
			if want := -100.0 / 128 * gain; first < want-1e-4 || first > want+1e-4 {
				t.Errorf("%s: the first sample is %v, want %v", file, first, want)
			}
		}
	})
	t.Run("without an effect", func(t *testing.T) {
		if _, err := try("faulty/mix", "same.wav", func(o *Options) {
			o.Values = map[string]any{"amount": 0}
		}); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(clip)
		if after, err := os.ReadFile(filepath.Join(dir, "same.wav")); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the file differs: %v", err)
		}
	})
	t.Run("spectrograms", func(t *testing.T) {
		if text, err := try("logmel", "seen.png", nil); err != nil ||
			!strings.Contains(text, "seen.png; mel_spectrograms: ") {
			t.Fatalf("%q, %v", text, err)
		}
		f, err := os.Open(filepath.Join(dir, "seen.png"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c, err := png.DecodeConfig(f)
		if err != nil || c.Width == 0 || c.Height == 0 {
			t.Errorf("%+v, %v", c, err)
		}
	})
	t.Run("a chain", func(t *testing.T) { chain(t, dir, try) })
	t.Run("a pipeline", func(t *testing.T) { givenPipeline(t, dir, try) })
	t.Run("a clip among the files", func(t *testing.T) { keepsClip(t, dir, try) })
	refuses(t, try)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Command(stopped, new(bytes.Buffer), Options{
		Stages: []string{"mix"}, Clip: clip, Out: filepath.Join(dir, "x.wav"), Epoch: 1, Step: 1, Count: 1,
		Plugins: plugins, Graph: pico, CacheDir: filepath.Join(dir, "cache"),
	}); err == nil {
		t.Error("no error after the end of the context")
	}
}

// tries a command, and returns what it prints.
type try func(stage, out string, change func(*Options)) (string, error)

// chain tries two stages, each of which has its files: the second reads what the first has written.
func chain(t *testing.T, dir string, try try) {
	text, err := try("mix,logmel", "chain/", func(o *Options) { o.Epoch, o.Count, o.Step = 2, 2, 7 })
	if err != nil || strings.Count(text, "\n") != 4 || !strings.Contains(text, "\nmix, epoch 3: ") {
		t.Fatalf("%q, %v", text, err)
	}
	folder := filepath.Join(dir, "chain")
	var r Record
	data, err := os.ReadFile(filepath.Join(folder, "draws.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	key := dataset.RowKey(1, 1, "A-0001", "mix") // of the second epoch
	if len(r.Epochs) != 2 || r.Epochs[0].Epoch != 2 || r.Epochs[0].Step != 7 || len(r.Epochs[0].Stages) != 2 ||
		r.Epochs[0].Stages[0].Key != hex.EncodeToString(key[:]) {
		t.Fatalf("%+v", r)
	}
	for _, name := range []string{"before.wav", "before.png"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	for _, stage := range r.Epochs[1].Stages {
		for _, o := range stage.Outputs {
			_, err := os.Stat(filepath.Join(folder, o.Picture))
			if err != nil || !strings.HasPrefix(o.Picture, "epoch-3/") {
				t.Errorf("%s: %v", o.Picture, err)
			}
		}
	}
	// The spectrogram is that of what mix wrote, not of the clip, and each sound is what its stage wrote.
	alone, err := try("logmel", "alone.png", nil)
	if err != nil {
		t.Fatal(err)
	}
	values := r.Epochs[0].Stages[1].Outputs[0].Text
	if values == "" || strings.Contains(alone, values) {
		t.Errorf("logmel has not read what mix wrote: %s", values)
	}
	epoch := filepath.Join(folder, "epoch-2")
	if bytes.Equal(content(t, epoch, "1-mix.wav"), content(t, folder, "before.wav")) ||
		bytes.Equal(content(t, epoch, "1-mix.wav"), content(t, folder, "epoch-3/1-mix.wav")) {
		t.Error("mix has written the clip, or the same in two epochs")
	}
}

func content(t *testing.T, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Error(err)
	}
	return data
}

// givenPipeline tries a pipeline of a file: all of it, or up to a stage, with the configuration and names that it has.
func givenPipeline(t *testing.T, dir string, try try) {
	file := filepath.Join(dir, "two.yaml")
	if err := os.WriteFile(file, []byte(`
batch_size: 3
pipeline:
  - name: none
    stage: mix
    config: {amount: 0}
    inputs: {waveform: waveform, waveform_lengths: waveform_lengths}
    outputs: {waveform: waveform, waveform_lengths: waveform_lengths}
  - name: some
    stage: mix
    inputs: {waveform: waveform, waveform_lengths: waveform_lengths}
    outputs: {waveform: waveform, waveform_lengths: waveform_lengths}
`), 0o666); err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]string{"": "none some", "none": "none", "some": "none some"} {
		text, err := try("", "two/", func(o *Options) {
			if o.Pipeline, o.Stages = file, nil; names != "" {
				o.Stages = []string{names}
			}
		})
		var got []string
		for line := range strings.Lines(text) {
			stage, _, _ := strings.Cut(line, ",")
			got = append(got, stage)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v", names, text, err)
		}
	}
	if !bytes.Equal(content(t, dir, "two/1-none.wav"), content(t, dir, "two/before.wav")) ||
		bytes.Equal(content(t, dir, "two/2-some.wav"), content(t, dir, "two/before.wav")) {
		t.Error("the configuration of the file is not used")
	}
	_, err := try("", "two/", func(o *Options) { o.Pipeline, o.Stages = file, []string{"other"} })
	if exit.Code(err) != 2 || err.Error() != `the pipeline of --pipeline has no stage "other"` ||
		hint.Of(err) != "it has none, some" {
		t.Error(err, hint.Of(err))
	}
}

// refuses tries what cannot be written.
func refuses(t *testing.T, try try) {
	t.Helper()
	for _, c := range []struct{ stage, out, err, hint string }{
		{
			"logmel", "x.wav",
			"stage logmel writes no waveform but mel_spectrograms, which this program cannot make audible",
			"--out seen.png shows them as a picture",
		},
		{"mix", "x.png", "stage mix writes waveform, which is heard and not seen", "--out heard.wav"},
		{
			"mix", "x.mp3", "--out ends neither with .wav nor with .png",
			"--out heard.wav for a sound, --out seen.png for a picture, --out heard/ for both",
		},
	} {
		if _, err := try(c.stage, c.out, nil); exit.Code(err) != 2 || err.Error() != c.err || hint.Of(err) != c.hint {
			t.Errorf("%s to %s: %v, hint %q", c.stage, c.out, err, hint.Of(err))
		}
	}
	_, err := try("mix", "x.wav", func(o *Options) { o.Clip = "nothing.wav" })
	if exit.Code(err) != 2 || err.Error() != "--clip nothing.wav: no such file or directory" {
		t.Error(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, []byte("pipeline: []"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = try("", "x/", func(o *Options) { o.Pipeline, o.Stages = empty, nil })
	if exit.Code(err) != 2 || err.Error() != empty+` has no stages in "pipeline"` || hint.Of(err) == "" {
		t.Errorf("%v, hint %q", err, hint.Of(err))
	}
}

// keepsClip tries files that a command writes as its clip, which has to stay as it is.
func keepsClip(t *testing.T, dir string, try try) {
	for _, c := range []struct {
		clip, out string
		count     int
	}{
		{"kept/before.wav", "kept/", 1}, {"kept/1-mix.wav", "kept/", 1}, {"kept/epoch-1/1-mix.wav", "kept/", 2},
		{"kept/epoch-2/1-mix.wav", "kept/", 2}, {"kept/x.wav", "kept/x.wav", 1}, {"kept/x-2.wav", "kept/x.wav", 2},
	} {
		clip := filepath.Join(dir, c.clip)
		if err := os.MkdirAll(filepath.Dir(clip), 0o777); err != nil {
			t.Fatal(err)
		}
		was := content(t, wave(t, 22050))
		if err := os.WriteFile(clip, was, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := try("mix", c.out, func(o *Options) { o.Clip, o.Count = clip, c.count })
		if exit.Code(err) != 2 || !strings.HasSuffix(err.Error(), "is the file of --clip: it would be overwritten") {
			t.Errorf("%s to %s: %v", c.clip, c.out, err)
		}
		if !bytes.Equal(content(t, clip), was) {
			t.Errorf("%s was written over", c.clip)
		}
	}
	alone := filepath.Join(dir, "kept/1-mix.wav") // no file of two epochs
	if _, err := try("mix", "kept/", func(o *Options) { o.Clip, o.Count = alone, 2 }); err != nil {
		t.Error(err)
	}
}

// TestCurve: a row of values is a curve, which is described.
func TestCurve(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pitch.png")
	if text, err := writePicture(
		file, "pitch", []float32{0, 1, 0.5}, 1, 0.01,
	); err != nil || !strings.HasSuffix(text, "pitch: 3 frames, values from 0 to 1") {
		t.Fatal(text, err)
	}
	curve, _ := picture.Curve(picture.Step{Size: 0.01, Unit: "s"}, []float32{0, 1, 0.5})
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, curve) {
		t.Errorf("the file is no curve: %v", err)
	}
}

// TestClipped: samples beyond full scale are counted.
func TestClipped(t *testing.T) {
	text, err := writeSound(filepath.Join(t.TempDir(), "x.wav"), []float32{0.5, 0}, []float32{2, -3}, 22050)
	if err != nil || !strings.HasSuffix(text, "; clipped in the file: 2 samples beyond full scale") {
		t.Error(text, err)
	}
}

// TestLongClip: what a header says of a clip's length is no reason to take that much memory.
func TestLongClip(t *testing.T) {
	const rate = 4000
	file := filepath.Join(t.TempDir(), "long.wav")
	samples := make([]float32, longest*rate)
	if _, err := writeSound(file, samples, samples, rate); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(file, rate); err == nil || !strings.Contains(err.Error(), "600 s long") {
		t.Errorf("error %v", err)
	}
}

// TestSilentClip: a clip that a run leaves out is refused with the run's reason. A plugin that is given silence would
// be blamed for its results.
func TestSilentClip(t *testing.T) {
	const rate = 4000
	file := filepath.Join(t.TempDir(), "silent.wav")
	samples := make([]float32, rate)
	if _, err := writeSound(file, samples, samples, rate); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(file, rate); err == nil || !strings.HasPrefix(err.Error(), "silent: no sample is above") {
		t.Errorf("error %v", err)
	}
}

// TestChanged: the values that are given replace those of the bundle's instance, and only them.
func TestChanged(t *testing.T) {
	own := map[string]any{"kept": 1, "given": 1}
	got := changed(own, map[string]any{"given": 2})
	if want := (map[string]any{"kept": 1, "given": 2}); !maps.Equal(got, want) || own["given"] != 1 {
		t.Errorf("%v of %v, want %v", got, own, want)
	}
}

// TestStagesOfChoices: a stage that not every row gets is sent each row if it is named, or if all are asked for, and
// otherwise left out.
func TestStagesOfChoices(t *testing.T) {
	some, twice := &manifest.Probability{Points: [][2]float64{{0, 0.5}}}, 2.0
	pipeline := []manifest.StageInstance{
		{Name: "clip", Stage: "soft-clip", P: some},
		{Name: "group", OneOf: []manifest.StageInstance{
			{Name: "hiss", Stage: "noise"}, {Name: "hum", Stage: "noise", Weight: &twice},
		}},
		{Name: "target", Stage: "logmel"},
	}
	for _, c := range []struct{ names, want []string }{
		{nil, []string{"clip", "hiss", "hum", "target"}}, {[]string{"target"}, []string{"target"}},
		{[]string{"hum", "p/soft-clip"}, []string{"clip", "hum", "target"}},
	} {
		got := certain(pipeline, c.names)
		if !slices.Equal(instances(got), c.want) {
			t.Errorf("%q: %q, want %q", c.names, instances(got), c.want)
		}
		if err := manifest.CheckPipeline(got); err != nil || got[0].P != nil {
			t.Errorf("%q: %v, p %v", c.names, err, got[0].P)
		}
	}
	w, chosen := way{asked: manifest.Steps(pipeline)}, map[string]int{}
	for epoch := range 100 {
		row := choice.Row{Seed: 1, Epoch: epoch, ID: "a"}
		if gets := w.chosen("target", row); gets != nil {
			t.Errorf("target: %v, but each row gets it", *gets)
		}
		one := 0
		for _, name := range []string{"clip", "hiss", "hum"} {
			if *w.chosen(name, row) {
				chosen[name]++
				if name != "clip" {
					one++
				}
			}
		}
		if one != 1 {
			t.Errorf("epoch %d: %d members of a one_of", epoch, one)
		}
	}
	if chosen["clip"] < 35 || chosen["clip"] > 65 || chosen["hum"] < 55 || chosen["hum"] > 78 {
		t.Errorf("chosen of 100: %v", chosen)
	}
}

// TestPlaceInPipeline: the clip goes to an instance of a pipeline file through all that change what it reads, also
// through stages that not every row gets.
func TestPlaceInPipeline(t *testing.T) {
	some := &manifest.Probability{Points: [][2]float64{{0, 0.5}}}
	wave := map[string]string{"waveform": "waveform"}
	given := []manifest.StageInstance{
		{Name: "street", Stage: "noise", P: some, Inputs: wave, Outputs: wave},
		{
			Name: "target", Stage: "logmel", Inputs: wave, Outputs: map[string]string{"mel": "mel"},
		},
		{Name: "prosody", Stage: "prosody", Inputs: wave, Outputs: map[string]string{"pitch": "pitch"}},
	}
	pipeline, named, err := place([]string{"target"}, given, new(manifest.Bundle), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := instances(leading(pipeline, named)); !slices.Equal(got, []string{"street", "target"}) {
		t.Errorf("the way to target: %q", got)
	}
}

// TestBucketOf: the frames of a clip fit, also in the tensors that are made from the reference.
func TestBucketOf(t *testing.T) {
	b, err := ortgraphs.Open("builtin:myxtts-nano", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, samples := range []int{1000, 45354, 600000} {
		bucket, frames := bucketOf(b.Manifest, samples), b.Manifest.Features.Frames(samples)
		for _, symbol := range []string{"T_mel", "T_ref_mel"} {
			if bucket[symbol] < frames {
				t.Errorf("%d samples: %s is %d, for %d frames", samples, symbol, bucket[symbol], frames)
			}
		}
	}
}
