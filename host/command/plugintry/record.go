package plugintry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/shared/mel"
)

// The files of a folder besides those of the stages.
const (
	beforeSound   = "before.wav"
	beforePicture = "before.png"
	drawsFile     = "draws.json"
)

// Record is the content of draws.json. docs/plugin-reference.md describes it.
type Record struct {
	Version int     `json:"version"`
	Clip    string  `json:"clip"`
	Seed    int64   `json:"seed"`
	Epochs  []Epoch `json:"epochs"`
}

// Epoch is one way of the clip. Epoch and Step are counted from 1.
type Epoch struct {
	Epoch  int       `json:"epoch"`
	Step   int       `json:"step"`
	Stages []Outcome `json:"stages"`
}

// Outcome is what a stage has made of the clip.
type Outcome struct {
	Name   string `json:"name"` // of the instance
	Plugin string `json:"plugin"`
	Stage  string `json:"stage"`
	Key    string `json:"row_key"` // in hexadecimal digits
	// Chosen says whether a run gives the clip the stage, if it chooses the rows that get it.
	Chosen *bool `json:"chosen,omitempty"`
	// Draws is what the stage reports that it drew, or null.
	Draws        json.RawMessage `json:"draws"`
	Milliseconds float64         `json:"milliseconds"`
	// Outputs are what can be heard or seen, in the order of plugin.json.
	Outputs []Output `json:"outputs"`
}

// Output describes an output of a stage. The files are relative to the folder of draws.json.
type Output struct {
	Port    string `json:"port"`
	Text    string `json:"text"`
	Sound   string `json:"sound,omitempty"`
	Picture string `json:"picture,omitempty"`
}

// Line describes the outcome to a person.
func (o Outcome) Line() string {
	var parts []string
	for _, out := range o.Outputs {
		parts = append(parts, out.Text)
	}
	return strings.Join(parts, "; ") + o.why()
}

// line is Line with the files, which are in a folder.
func (o Outcome) line(folder string) string {
	var parts []string
	for _, out := range o.Outputs {
		parts = append(parts, filepath.Join(folder, cmp.Or(out.Sound, out.Picture)), out.Text)
	}
	text := strings.Join(parts, "; ")
	if text == "" {
		text = "it writes neither a waveform nor a matrix of f32"
	}
	return text + o.why()
}

// why is the end of a line: what was drawn, if the stage has reported it, and whether a run does not give the clip the
// stage.
func (o Outcome) why() (text string) {
	var b bytes.Buffer
	if string(o.Draws) != "null" && json.Compact(&b, o.Draws) == nil {
		text = "; drew " + visible.Short(b.String(), 300)
	}
	if o.Chosen != nil && !*o.Chosen {
		text += "; in a run, the clip does not get this stage"
	}
	return text
}

// Record returns a record of ways of the clip.
func (t *Trial) Record(epochs ...Epoch) *Record {
	return &Record{Version: 1, Clip: t.clip, Seed: t.seed, Epochs: epochs}
}

// Save writes draws.json into a folder.
func (r *Record) Save(folder string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	return written(disk.Replace(filepath.Join(folder, drawsFile), visible.JSON(b.Bytes())))
}

// Save writes the clip, and what each stage has made of it, into a folder: sounds, and pictures of their spectrograms
// and of all other matrices. below is the folder in it for the files of the stages, or empty.
func (t *Trial) Save(folder, below string, epoch, step int, done []Done) (Epoch, error) {
	e := Epoch{Epoch: epoch, Step: step, Stages: []Outcome{}}
	if err := files.At(filepath.Join(folder, below)).MkdirAll(); err != nil {
		return e, written(err)
	}
	if _, err := writeSound(filepath.Join(folder, beforeSound), t.wave, t.wave, t.features.SampleRate); err != nil {
		return e, err
	}
	if _, err := t.spectrogram(filepath.Join(folder, beforePicture), t.wave); err != nil {
		return e, err
	}
	for n, d := range done {
		d.Outcome.Outputs = []Output{}
		for _, o := range d.outputs {
			stem := stemOf(n, d.Name, o.shown, len(d.outputs) > 1)
			saved, err := t.saveOutput(folder, filepath.Join(below, stem), o)
			if err != nil {
				return e, err
			}
			d.Outputs = append(d.Outputs, saved)
		}
		e.Stages = append(e.Stages, d.Outcome)
	}
	return e, nil
}

// stemOf is the name, without its ending, of the files of an output of the n-th instance.
func stemOf(n int, instance string, s shown, several bool) string {
	stem := fmt.Sprintf("%d-%s", n+1, instance)
	if several {
		stem += "-" + s.port
	}
	return stem
}

// saveOutput writes the files of one output, whose path without ending is stem in the folder.
func (t *Trial) saveOutput(folder, stem string, o output) (saved Output, err error) {
	saved = Output{Port: o.port, Picture: stem + ".png"}
	file := saved.Picture
	if o.sound {
		drawn, err := t.spectrogram(filepath.Join(folder, saved.Picture), o.values)
		if err != nil {
			return saved, err
		}
		if !drawn {
			saved.Picture = ""
		}
		saved.Sound = stem + ".wav"
		file = saved.Sound
	}
	saved.Text, err = t.write(o, filepath.Join(folder, file))
	return saved, err
}

// spectrogram draws a waveform. One that is too short, or has a sample that is not finite, has no picture.
func (t *Trial) spectrogram(file string, wave []float32) (drawn bool, err error) {
	e, err := mel.New(t.features)
	if err != nil {
		return false, err
	}
	cutter := e.Cutter()
	frames, err := cutter.Count(wave)
	if err != nil {
		files.At(file).Remove() // of another clip
		return false, nil
	}
	values := make([]float32, frames*t.features.NMels)
	if err := e.Compute(values, wave); err != nil {
		files.At(file).Remove()
		return false, nil
	}
	_, err = writePicture(file, "", values, t.features.NMels, t.frame())
	return err == nil, err
}

// frame is the time between two frames, in seconds.
func (t *Trial) frame() float64 {
	return float64(t.features.HopLength) / float64(t.features.SampleRate)
}

// output returns the output of a port.
func (d Done) output(port string) output {
	for _, o := range d.outputs {
		if o.port == port {
			return o
		}
	}
	return output{}
}

// write writes an output to a file and describes it.
func (t *Trial) write(o output, file string) (string, error) {
	if o.sound {
		return writeSound(file, o.before, o.values, t.features.SampleRate)
	}
	return writePicture(file, o.port, o.values, o.columns, t.frame())
}

// written is the error of a file that could not be written.
func written(err error) error {
	if err == nil {
		return nil
	}
	return exit.Advise(fmt.Errorf("--out: %w", err), "name a file or folder that can be written")
}
