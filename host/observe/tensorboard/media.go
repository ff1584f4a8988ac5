package tensorboard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image/png"
	"math"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// maxMedium limits a picture or a sound of the run folder, in bytes: what a reader of this package takes, too.
const maxMedium = maxRecord - 1<<20

// takeSpoken writes the means of an evaluation's speech, and keeps its media for later. A resumed run publishes them
// again.
func (b *Board) takeSpoken(e *event.Spoken) {
	if e.Step > b.have.spoken {
		b.record(e.Step, func(m *message) {
			for _, v := range e.Measures {
				m.scalar(v.Value, spokenGroup, v.Name)
			}
		})
		b.have.spoken = e.Step
	}
	if _, ok := b.have.media[e.Step]; !ok && len(e.Utterances) > 0 {
		b.pending = append(b.pending, new(*e))
	}
}

// takeProbed writes the figures of the probes, and keeps their histograms and pictures for later.
func (b *Board) takeProbed(e *event.Probed) {
	for _, p := range e.Tensors {
		b.record(e.Step, func(m *message) {
			m.scalar(p.Mean, probeGroup, p.Name, "mean")
			m.scalar(p.Std, probeGroup, p.Name, "std")
			m.scalar(p.Norm, probeGroup, p.Name, "norm")
			m.scalar(float64(p.NotFinite), probeGroup, p.Name, "not_finite")
		})
	}
	if _, ok := b.have.media[e.Step]; !ok && len(e.Tensors) > 0 {
		b.pending = append(b.pending, new(*e))
	}
}

// stepOf is the step of a pending evaluation.
func stepOf(e event.Event) int64 {
	if s, ok := e.(*event.Spoken); ok {
		return s.Step
	}
	return e.(*event.Probed).Step
}

// mediaWriter writes a file of media, one record at a time: together they may be large.
type mediaWriter struct {
	*Board
	to  *files.File
	buf []byte
}

func (w *mediaWriter) write(e event.Event) error {
	switch e := e.(type) {
	case *event.Spoken:
		for i := range e.Utterances {
			if err := w.utterance(e.Step, &e.Utterances[i]); err != nil {
				return err
			}
		}
	case *event.Probed:
		for i := range e.Tensors {
			p := &e.Tensors[i]
			err := w.one(e.Step, func(m *message) {
				if h := histogramOf(p); h != nil {
					m.histogram(h, probeGroup, p.Name)
				}
				w.picture(m, p.Picture, probeGroup, p.Name, "picture")
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// one writes a record.
func (w *mediaWriter) one(step int64, fill func(m *message)) error {
	w.m.begin(step, w.now())
	if fill(&w.m); w.m.values == 0 {
		return nil
	}
	w.buf = appendRecord(w.buf[:0], w.m.b)
	_, err := w.to.Write(w.buf)
	return err
}

// utterance writes the records of a text that was spoken.
func (w *mediaWriter) utterance(step int64, u *event.Utterance) error {
	name := fmt.Sprintf("sample-%d", u.Number)
	if u.Clip {
		name = fmt.Sprintf("clip-%d", u.Number)
	}
	for _, fill := range []func(m *message){
		func(m *message) { m.text(describe(u), spokenGroup, name, "text") },
		func(m *message) { w.sound(m, u.File, spokenGroup, name, "speech") },
		func(m *message) { w.sound(m, u.Reference, spokenGroup, name, "recording") },
		func(m *message) { w.picture(m, u.Picture, spokenGroup, name, "spectrograms") },
	} {
		if err := w.one(step, fill); err != nil {
			return err
		}
	}
	return nil
}

// medium reads a file of the run folder. One that is not there any more, or cannot be read, is not on the board: the
// folder of the evaluation says more.
func (w *mediaWriter) medium(path string) []byte {
	if !filepath.IsLocal(path) { // also for none
		return nil
	}
	data, err := files.In(w.Dir, path).Read(maxMedium)
	if err != nil {
		return nil
	}
	return data
}

func (w *mediaWriter) picture(m *message, path string, tag ...string) {
	data := w.medium(path)
	if is, err := png.DecodeConfig(bytes.NewReader(data)); err == nil {
		m.image(data, is.Width, is.Height, tag...)
	}
}

func (w *mediaWriter) sound(m *message, path string, tag ...string) {
	data := w.medium(path)
	if is, ok := waveOf(data); ok {
		m.audio(data, is, tag...)
	}
}

// wave is what a WAV file says of its sound.
type wave struct {
	rate, channels uint32
	frames         int64
}

// waveOf reads the header of a WAV file.
func waveOf(b []byte) (w wave, ok bool) {
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return w, false
	}
	var frame uint32 // bytes
	for b = b[12:]; len(b) >= 8; {
		id, size := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
		switch {
		case id == "fmt " && size >= 16 && len(b) >= 16:
			w.channels, w.rate = uint32(binary.LittleEndian.Uint16(b[2:])), binary.LittleEndian.Uint32(b[4:])
			frame = uint32(binary.LittleEndian.Uint16(b[12:]))
		case id == "data" && frame > 0:
			w.frames = min(size, int64(len(b))) / int64(frame)
			return w, true
		}
		b = b[min(size+size%2, int64(len(b))):]
	}
	return w, false
}

// histogramOf turns the edges and counts of a probe into those of TensorBoard, whose first bucket has no lower edge. It
// returns nil for a probe without values.
func histogramOf(p *event.Probe) *histogram {
	if len(p.Counts) == 0 || len(p.Edges) != len(p.Counts)+1 {
		return nil
	}
	h := &histogram{min: p.Min, max: p.Max, squares: p.Norm * p.Norm}
	h.limits, h.counts = append(h.limits, math.Nextafter(p.Edges[0], math.Inf(-1))), append(h.counts, 0)
	for i, n := range p.Counts {
		h.limits, h.counts = append(h.limits, p.Edges[i+1]), append(h.counts, float64(n))
		h.num += float64(n)
	}
	h.sum = p.Mean * h.num
	return h
}

// describe is the text of an utterance with what was measured of it, in Markdown.
func describe(u *event.Utterance) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", escape(visible.Text(u.Text)))
	fmt.Fprintf(&b, "| measure | value |\n|---|---|\n| clip | %s |\n", escape(visible.Text(u.ID)))
	if u.Language != "" {
		fmt.Fprintf(&b, "| language | %s |\n", escape(visible.Text(u.Language)))
	}
	ended := "yes"
	if !u.Ended {
		ended = "no, cut at the limit of its length"
	}
	fmt.Fprintf(&b, "| seconds | %.2f |\n| ended by the model | %s |\n", u.Seconds, ended)
	for _, v := range u.Measures {
		fmt.Fprintf(&b, "| %s | %.4g |\n", escape(v.Name), v.Value)
	}
	return b.String()
}

// special are the characters with a meaning in Markdown, each with what shows it.
var special = func() *strings.Replacer {
	list := []string{"&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "&#124;"}
	for _, c := range "\\`*_{}[]()#+-.!" {
		list = append(list, string(c), fmt.Sprintf("&#%d;", c))
	}
	return strings.NewReplacer(list...)
}()

// escape makes a text of a stranger one that Markdown shows as it is.
func escape(s string) string { return special.Replace(s) }

// block shows a text of several lines as it is.
func block(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(visible.Block(s), "\n"), "\n", "\n    ")
}
