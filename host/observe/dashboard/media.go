package dashboard

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/picture"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/shared/audio"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel"
	"github.com/xtts-host/xtts-host/shared/wav"
)

const (
	// mostSound bounds a sound or a picture of a run folder that is sent, in bytes.
	mostSound = 64 << 20
	// longest bounds the seconds of a clip that are decoded.
	longest = 60
)

// kinds are the files of a run folder that are sent, by their endings: the type, and what such a file begins with.
var kinds = map[string]struct{ mime, begin string }{
	".wav": {"audio/wav", "RIFF"}, ".png": {"image/png", "\x89PNG\r\n\x1a\n"},
}

var errOccupied = errors.New("busy with other sounds")

// media answers with a sample of the run folder. No other file has such a name, and no link is followed.
func (s *Server) media(w http.ResponseWriter, q *http.Request, r *run) {
	name := q.URL.Query().Get("file")
	f := openSample(w, r, name)
	if f == nil {
		return
	}
	defer f.Close()
	kind := kinds[path.Ext(name)]
	begin := make([]byte, len(kind.begin))
	if f.Size() > mostSound || files.ReadAt(f, begin, 0) != nil || string(begin) != kind.begin {
		http.Error(w, "the file is neither a sound nor a picture", http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("Content-Type", kind.mime)
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
	http.ServeContent(w, q, "", time.Time{}, f)
}

// openSample opens a sample of a run folder. It answers if there is none.
func openSample(w http.ResponseWriter, r *run, name string) *files.File {
	if !record.IsSample(name) {
		http.Error(w, "not the name of a sample", http.StatusBadRequest)
		return nil
	}
	f, err := files.In(r.Folder(), strings.Split(name, "/")...).Open()
	if err != nil {
		http.Error(w, "the file is not there any more, or is none of a run: "+text(reason(err)), http.StatusNotFound)
		return nil
	}
	return f
}

// reason is an error of a file without its path.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// clip answers with a recording that cannot be used, as a WAV file that every browser plays. Its path is what the list
// of such clips says, as in a run that would read it: only sound is taken from it.
func (s *Server) clip(w http.ResponseWriter, q *http.Request, r *run) {
	r.hub.fresh(q.Context())
	list, _ := r.Clips(int(min(1<<30, max(0, number(q.URL.Query().Get("n"), -1)))), 1)
	if len(list) == 0 || list[0].Path == "" {
		http.Error(w, "there is no such clip", http.StatusNotFound)
		return
	}
	if q.URL.Query().Has("check") {
		send(w, map[string]string{"problem": check(list[0].Path)})
		return
	}
	done, ok := s.computing(q.Context())
	if !ok {
		http.Error(w, errOccupied.Error(), http.StatusServiceUnavailable)
		return
	}
	defer done()
	f, err := files.Open(list[0].Path)
	if err != nil {
		http.Error(w, text(reason(err)), http.StatusNotFound)
		return
	}
	samples, rate, err := decode(f)
	if err != nil {
		http.Error(w, text(err.Error()), http.StatusUnsupportedMediaType)
		return
	}
	data := make([]int16, len(samples))
	for i, v := range samples {
		data[i] = wav.Sample(v)
	}
	sendFile(w, q, "audio/wav", wav.File(rate, data))
}

// check says why a recording cannot be played, as far as its beginning tells; "" if nothing does.
func check(path string) string {
	f, err := files.Open(path)
	if err != nil {
		return text(reason(err))
	}
	sound, err := audio.New(f)
	if err != nil {
		return text(err.Error())
	}
	sound.Close()
	return ""
}

// decode reads the first minute of a recording, and closes it.
func decode(f audio.Source) (samples []float32, rate int, err error) {
	sound, err := audio.New(f)
	if err != nil {
		return nil, 0, err
	}
	defer sound.Close()
	samples = make([]float32, min(sound.Frames, longest*sound.SampleRate))
	if err := new(audio.Reader).Read(samples, sound, 0); err != nil {
		return nil, 0, err
	}
	return samples, sound.SampleRate, nil
}

// sendFile answers with a file, or with the part that the client asks for.
func sendFile(w http.ResponseWriter, q *http.Request, mime string, data []byte) {
	w.Header().Set("Content-Type", mime)
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
	http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(data))
}

// spectrogram answers with a picture of a sample that has none, as a sentence.
func (s *Server) spectrogram(w http.ResponseWriter, q *http.Request, r *run) {
	f := openSample(w, r, q.URL.Query().Get("file"))
	if f == nil {
		return
	}
	defer f.Close()
	s.draw(w, q, func() ([]float32, int, error) { return decode(f) })
}

// draw answers with the spectrogram of a sound.
func (s *Server) draw(w http.ResponseWriter, q *http.Request, read func() ([]float32, int, error)) {
	data, err := s.drawn(q.Context(), read)
	switch {
	case errors.Is(err, errOccupied):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, text(err.Error()), http.StatusUnsupportedMediaType)
	default:
		sendFile(w, q, "image/png", data)
	}
}

func (s *Server) drawn(ctx context.Context, read func() ([]float32, int, error)) ([]byte, error) {
	done, ok := s.computing(ctx)
	if !ok {
		return nil, errOccupied
	}
	defer done()
	samples, rate, err := read()
	if err != nil {
		return nil, err
	}
	return spectrogram(samples, rate)
}

// bands is the number of bands of a spectrogram.
const bands = 80

// spectrogram draws the log-mel spectrogram of a sound.
func spectrogram(samples []float32, rate int) ([]byte, error) {
	window := 1 << 10
	for window > rate/20 && window > 64 {
		window /= 2
	}
	e, err := mel.New(manifest.Features{
		SampleRate: rate, NFFT: window, WinLength: window, HopLength: window / 4, Window: "hann", Center: true,
		PadMode: "reflect", Power: 1, NMels: bands, MelScale: "htk", MelNorm: "none", FMin: 0, FMax: float64(rate) / 2,
		Log: "ln", LogFloor: 1e-4,
	})
	if err != nil {
		return nil, err
	}
	frames := e.Features().Frames(len(samples))
	if len(samples) <= window || frames < 2 {
		return nil, errors.New("the sound is too short for a spectrogram")
	}
	values := make([]float32, frames*bands)
	if err := e.Compute(values, samples); err != nil {
		return nil, err
	}
	return picture.Heat(picture.Step{Size: float64(window/4) / float64(rate), Unit: "s"},
		picture.Matrix{Values: values, Columns: bands})
}
