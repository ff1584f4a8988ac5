package tensorboard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// open opens the board of a run.
func open(t *testing.T, c Config) *Board {
	t.Helper()
	c.Metrics = []string{"mel_loss"}
	b, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func take(t *testing.T, b *Board, events ...event.Event) {
	t.Helper()
	if err := b.Take(events); err != nil {
		t.Fatal(err)
	}
}

func shut(t *testing.T, b *Board) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func step(n int64) *event.Step {
	return &event.Step{
		Step: n, Loss: 1 / float64(n), Metrics: []float64{float64(n)}, LR: 0.5, GradNorm: 2,
		Times: event.Times{Time: 100 * time.Millisecond, InputWait: 5 * time.Millisecond},
	}
}

func evaluation(n int64) *event.Evaluation {
	return &event.Evaluation{Step: n, Loss: 0.25, Metrics: []float64{0.75}}
}

// spoken makes the files of an evaluation's speech in a run folder.
func spoken(t *testing.T, run string, n int64) *event.Spoken {
	t.Helper()
	folder := fmt.Sprintf("samples/step-%06d", n)
	if err := os.MkdirAll(filepath.Join(run, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 7, 5))); err != nil {
		t.Fatal(err)
	}
	e := &event.Spoken{
		Step: n, Measures: []event.Value{{Name: "mcd_db", Value: 6.5}, {Name: "silence", Value: 0.125}},
		Utterances: []event.Utterance{{
			Clip: true, Number: 1, ID: "a_1", Text: "One *two* <b>|", File: folder + "/clip-1.wav",
			Picture: folder + "/clip-1.png", Reference: "samples/reference/gone.wav", Ended: true,
		}},
	}
	for path, data := range map[string][]byte{e.Utterances[0].File: wav(4), e.Utterances[0].Picture: picture.Bytes()} {
		if err := os.WriteFile(filepath.Join(run, path), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func probed(n int64) *event.Probed {
	return &event.Probed{Step: n, Tensors: []event.Probe{{
		Name: "attention.0", Mean: 2, Std: 1, Min: 1, Max: 4, Norm: 6, Edges: []float64{1, 2, 4}, Counts: []int{1, 3},
	}}}
}

// texts are the values as lines.
func texts(all []shown) (lines []string) {
	for _, s := range all {
		lines = append(lines, s.String())
	}
	return lines
}

func TestValues(t *testing.T) {
	run := t.TempDir()
	b := open(t, Config{Dir: run, Settings: "lr: 0.5\n"})
	skipped := step(2)
	skipped.Skipped, skipped.Loss, skipped.GradNorm = true, math.NaN(), math.NaN()
	two := step(3)
	two.Players = []event.Player{{Name: "critic", LR: 0.25, GradNorm: 3}, {Name: "speaker", LR: 0.5, GradNorm: 2}}
	take(t, b, &event.Start{Total: 3}, step(1), skipped,
		&event.Memory{Role: "Model", Used: 3 << 20, Limit: 8 << 20}, &event.Memory{Role: "Model", Used: 1, Limit: 1},
		&event.Warning{Text: "a | b"}, two, evaluation(3), probed(3), spoken(t, run, 3))
	shut(t, b)
	want := strings.Split(`0 run/config tensor
1 train/loss 1
1 train/mel_loss 1
1 train/lr 0.5
1 train/grad_norm 2
1 train/skipped_steps 0
1 speed/step_ms 100
1 speed/input_wait_ms 5
2 train/lr 0.5
2 train/skipped_steps 1
2 speed/step_ms 100
2 speed/input_wait_ms 5
2 speed/steps_per_second 10
2 gpu/model_memory_mib 3
2 gpu/model_memory_limit_mib 8
2 run/warnings tensor
3 train/loss 0.3333333432674408
3 train/mel_loss 3
3 train/lr 0.5
3 train/grad_norm 2
3 train/lr.critic 0.25
3 train/grad_norm.critic 3
3 train/skipped_steps 1
3 speed/step_ms 100
3 speed/input_wait_ms 5
3 speed/steps_per_second 10
3 eval/loss 0.25
3 eval/mel_loss 0.75
3 probes/attention.0/mean 2
3 probes/attention.0/std 1
3 probes/attention.0/norm 6
3 probes/attention.0/not_finite 0
3 spoken/mcd_db 6.5
3 spoken/silence 0.125
3 probes/attention.0 histo
3 spoken/clip-1/text tensor
3 spoken/clip-1/speech audio
3 spoken/clip-1/spectrograms image`, "\n")
	all := read(t, run)
	if got := texts(all); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range all {
		checkMedium(t, run, s)
	}
	if got := names(t, run); len(got) != 2 || !strings.HasSuffix(got[1], "0000000002.xtts-host.media.step-000003") {
		t.Errorf("files %q", got)
	}
}

// checkMedium checks what is no number.
func checkMedium(t *testing.T, run string, s shown) {
	t.Helper()
	file := func(name string) string {
		data, err := os.ReadFile(filepath.Join(run, "samples/step-000003", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	switch s.tag {
	case "run/config", "run/warnings", "spoken/clip-1/text":
		text := string(s.field("string_val").List().Get(0).Bytes())
		for _, want := range map[string][]string{
			"run/config":         {"    lr: 0.5"},
			"run/warnings":       {"warning: a &#124; b"},
			"spoken/clip-1/text": {"One &#42;two&#42; &lt;b&gt;&#124;\n\n", "| clip | a&#95;1 |"},
		}[s.tag] {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q has no %q", s.tag, text, want)
			}
		}
	case "spoken/clip-1/speech":
		if s.field("length_frames").Int() != 4 || s.field("sample_rate").Float() != 22050 ||
			s.field("num_channels").Int() != 1 ||
			string(s.field("encoded_audio_string").Bytes()) != file("clip-1.wav") {
			t.Errorf("%s: %v", s.tag, s.what)
		}
	case "spoken/clip-1/spectrograms":
		if s.field("width").Int() != 7 || s.field("height").Int() != 5 ||
			string(s.field("encoded_image_string").Bytes()) != file("clip-1.png") {
			t.Errorf("%s: %v", s.tag, s.what)
		}
	case "probes/attention.0":
		limits, counts := s.field("bucket_limit").List(), s.field("bucket").List()
		if limits.Len() != 3 || counts.Len() != 3 || limits.Get(2).Float() != 4 || counts.Get(2).Float() != 3 ||
			s.field("num").Float() != 4 || s.field("sum").Float() != 8 || s.field("sum_squares").Float() != 36 {
			t.Errorf("%s: %v", s.tag, s.what)
		}
	}
}

// A killed run may have gone on after its checkpoint, and leave a part of a record. Resumed, it has each step once.
func TestResume(t *testing.T) {
	for name, test := range map[string]struct {
		step, evaluated int64
		evals           []int64
		media           []int64
	}{
		"after an evaluation":  {4, 4, []int64{2, 4, 6}, []int64{2, 4, 6}},
		"before an evaluation": {4, 2, []int64{2, 4, 6}, []int64{2, 4, 6}},
		"from the beginning":   {0, 0, []int64{2, 4, 6}, []int64{2, 4, 6}},
		"between":              {5, 4, []int64{2, 4, 6}, []int64{2, 4, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			run := t.TempDir()
			goOn := func(b *Board, from, to int64) {
				take(t, b, &event.Start{Step: from, Total: to})
				if b.EvaluatedStep < from && from%2 == 0 {
					take(t, b, evaluation(from), spoken(t, run, from))
				}
				for n := from + 1; n <= to; n++ {
					take(t, b, step(n))
					if n%2 == 0 {
						take(t, b, evaluation(n), spoken(t, run, n))
					}
				}
			}
			goOn(open(t, Config{Dir: run}), 0, 6) // killed: not closed
			last := names(t, run)[len(names(t, run))-1]
			f, err := os.OpenFile(filepath.Join(run, rundir.BoardFolder, last), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString("\x20\x00\x00\x00\x00\x00\x00\x00torn")
			f.Close()
			b := open(t, Config{Dir: run, Step: test.step, EvaluatedStep: test.evaluated})
			for _, name := range names(t, run) {
				if f, ok := parseFile(name); !ok || f.media && f.step > test.evaluated {
					t.Errorf("%s is left", name)
				}
			}
			goOn(b, test.step, 6)
			if test.step == test.evaluated && test.step > 0 { // as a run does whose samples may be missing
				take(t, b, spoken(t, run, test.step))
			}
			shut(t, b)
			steps := map[string][]int64{}
			for _, s := range read(t, run) {
				steps[s.tag] = append(steps[s.tag], s.step)
			}
			for tag, want := range map[string][]int64{
				"train/loss": {1, 2, 3, 4, 5, 6}, "eval/loss": test.evals, "spoken/mcd_db": test.evals,
				"spoken/clip-1/speech": test.media,
			} {
				if !slices.Equal(steps[tag], want) {
					t.Errorf("%s: steps %v, want %v", tag, steps[tag], want)
				}
			}
		})
	}
}

// For a TensorBoard that is open meanwhile, a resumed run begins a session at the step after its checkpoint.
func TestSession(t *testing.T) {
	run := t.TempDir()
	for _, at := range []int64{0, 3} {
		b := open(t, Config{Dir: run, Step: at})
		take(t, b, &event.Start{Step: at}, step(at+1))
		shut(t, b)
		data, err := os.ReadFile(filepath.Join(run, rundir.BoardFolder, names(t, run)[min(at, 1)]))
		if err != nil {
			t.Fatal(err)
		}
		m := events(t, data)[1]
		session := m.Get(m.Descriptor().Fields().ByName("session_log")).Message()
		status := session.Get(session.Descriptor().Fields().ByName("status")).Enum()
		if n := m.Get(m.Descriptor().Fields().ByName("step")).Int(); status != 1 || n != at+1 {
			t.Errorf("resumed at %d: status %d at step %d", at, status, n)
		}
	}
}

// What is damaged, or was not written by a run, does not stop a run, and files of others stay.
func TestDamage(t *testing.T) {
	run := t.TempDir()
	b := open(t, Config{Dir: run})
	take(t, b, &event.Start{}, step(1), step(2))
	take(t, b, step(3))
	shut(t, b)
	path := filepath.Join(run, rundir.BoardFolder, names(t, run)[0])
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-100] ^= 1 // in step 3
	other := filepath.Join(run, rundir.BoardFolder, "events.out.tfevents.1700000000.elsewhere")
	for path, data := range map[string][]byte{path: data, other: []byte("mine")} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, open(t, Config{Dir: run, Step: 3}))
	if got, err := os.ReadFile(other); string(got) != "mine" || err != nil {
		t.Errorf("the file of someone else is %q, %v", got, err)
	}
	os.Remove(other)
	var steps []int64
	for _, s := range read(t, run) {
		if s.tag == "train/loss" {
			steps = append(steps, s.step)
		}
	}
	if !slices.Equal(steps, []int64{1, 2}) {
		t.Errorf("steps %v are left, want 1 and 2", steps)
	}
	link := filepath.Join(run, rundir.BoardFolder, file{number: 9}.String())
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, Config{Dir: run})) // not followed
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a new run keeps the file of an earlier one: %v", err)
	}
}

// The board of a long run stays small, and has its last step.
func TestLongRun(t *testing.T) {
	run := t.TempDir()
	b := open(t, Config{Dir: run})
	const total = 1_000_003
	take(t, b, &event.Start{Total: total})
	s := step(1)
	for n := int64(1); n <= total; n++ {
		s.Step = n
		take(t, b, s)
	}
	shut(t, b)
	info, err := os.Stat(filepath.Join(run, rundir.BoardFolder, names(t, run)[0]))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() > 12e6 {
		t.Errorf("%d bytes, more than 12 MB", info.Size())
	}
	count, last := 0, int64(0)
	for _, s := range read(t, run) {
		if s.tag == "train/loss" {
			count, last = count+1, s.step
		}
	}
	if count != 28_001 || last != total {
		t.Errorf("%d steps, the last %d", count, last)
	}
}

// Only the newest evaluations and the best one have media.
func TestKeep(t *testing.T) {
	run := t.TempDir()
	b := open(t, Config{Dir: run, Keep: 2})
	take(t, b, &event.Start{})
	for n := int64(1); n <= 5; n++ {
		e := evaluation(n)
		e.Best = n == 2
		take(t, b, step(n), e, spoken(t, run, n))
	}
	shut(t, b)
	b = open(t, Config{Dir: run, Keep: 2, Step: 5, EvaluatedStep: 5, Best: 2})
	take(t, b, &event.Start{Step: 5}, step(6), evaluation(6), spoken(t, run, 6), step(7))
	shut(t, b)
	var media, scalars []int64
	for _, s := range read(t, run) {
		switch s.tag {
		case "spoken/clip-1/speech":
			media = append(media, s.step)
		case "spoken/mcd_db":
			scalars = append(scalars, s.step)
		}
	}
	if !slices.Equal(media, []int64{2, 5, 6}) || !slices.Equal(scalars, []int64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("media of %v, means of %v", media, scalars)
	}
}

// A path that leaves the run folder is not read.
func TestPlacesOfMedia(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	e := spoken(t, run, 1)
	outside := filepath.Join(run, "..", "outside.wav")
	data, err := os.ReadFile(filepath.Join(run, e.Utterances[0].File))
	if err == nil {
		err = os.WriteFile(outside, data, 0o644)
	}
	if err == nil {
		err = os.Symlink(outside, filepath.Join(run, "link.wav"))
	}
	if err != nil {
		t.Fatal(err)
	}
	e.Utterances[0].File, e.Utterances[0].Reference = "../outside.wav", "link.wav"
	b := open(t, Config{Dir: run})
	take(t, b, &event.Start{}, step(1), e)
	shut(t, b)
	for _, s := range read(t, run) {
		if s.kind == "audio" {
			t.Errorf("%s is on the board", s)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	board, err := Open(Config{Dir: b.TempDir(), Metrics: []string{"mel_loss"}})
	if err != nil {
		b.Fatal(err)
	}
	s := step(1)
	for b.Loop() {
		if err := board.Take([]event.Event{s}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSpeech writes what an evaluation has spoken: two clips of 6 s with recordings of 2 s and their spectrograms.
func BenchmarkSpeech(b *testing.B) {
	dir := b.TempDir()
	board, err := Open(Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	noise := image.NewGray(image.Rect(0, 0, 600, 180))
	for i := range noise.Pix {
		noise.Pix[i] = byte(i * i >> 3)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, noise); err != nil {
		b.Fatal(err)
	}
	content := map[string][]byte{
		"speech.wav": wav(6 * 22050), "recording.wav": wav(2 * 22050), "picture.png": picture.Bytes(),
	}
	written := 0
	for name, data := range content {
		written += 2 * len(data)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	e := &event.Spoken{}
	for i := range 2 {
		e.Utterances = append(e.Utterances, event.Utterance{Clip: true, Number: i + 1, Text: "The lamp went out.",
			File: "speech.wav", Reference: "recording.wav", Picture: "picture.png", Seconds: 6})
	}
	b.SetBytes(int64(written))
	for b.Loop() {
		e.Step++
		if err := errors.Join(board.Take([]event.Event{e}), board.writeMedia()); err != nil {
			b.Fatal(err)
		}
	}
}

// wav is a recording of so many samples, of 16 bits and one channel.
func wav(samples int) []byte {
	size := func(b []byte, n int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(n)) }
	data := size([]byte("RIFF"), 36+2*samples)
	data = size(append(data, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...), 22050)
	data = append(size(data, 44100), "\x02\x00\x10\x00data"...)
	return append(size(data, 2*samples), make([]byte, 2*samples)...)
}
