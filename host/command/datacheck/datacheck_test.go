package datacheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

const rate = 8000

// tone is seconds of a sine at an amplitude; silence is a tone at 0.
func tone(seconds, amplitude, hertz float64) []float64 {
	samples := make([]float64, int(seconds*rate))
	for i := range samples {
		samples[i] = amplitude * math.Sin(2*math.Pi*hertz*float64(i)/rate)
	}
	return samples
}

func join(parts ...[]float64) (all []float64) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// wav is a file of one or two equal or opposite channels.
func wav(samples []float64, channels int, second float64) []byte {
	le := binary.LittleEndian
	var data []byte
	for _, v := range samples {
		for c := range channels {
			s := v
			if c == 1 {
				s *= second
			}
			data = le.AppendUint16(data, uint16(int16(math.Round(32767*max(-1, min(1, s))))))
		}
	}
	b := append([]byte("RIFF"), le.AppendUint32(nil, uint32(36+len(data)))...)
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00"...)
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, rate)
	b = le.AppendUint32(b, uint32(rate*channels*2))
	b = le.AppendUint16(b, uint16(channels*2))
	b = append(b, "\x10\x00data"...)
	return append(le.AppendUint32(b, uint32(len(data))), data...)
}

// recording is a clip of a made list.
type recording struct {
	id, text string
	file     []byte
}

// open indexes a list in a new folder.
func open(t *testing.T, list ...recording) *dataset.Index {
	t.Helper()
	dir, lines := t.TempDir(), ""
	for _, r := range list {
		lines += r.id + "|" + r.text + "\n"
		file := filepath.Join(dir, "wavs", r.id+".wav")
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, r.file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "metadata.csv"), []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	ix, err := dataset.Open(t.Context(), dataset.Config{Dir: dir, SampleRate: rate, MinSamples: 200})
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// anyLength is a bundle that takes clips of any length.
var anyLength = &manifest.Bundle{
	Features: manifest.Features{SampleRate: rate, HopLength: 100}, Buckets: []manifest.Bucket{{}},
}

func reportOf(t *testing.T, m *manifest.Bundle, list ...recording) *Report {
	t.Helper()
	ix := open(t, list...)
	r, err := check(t.Context(), ix, sides{train: ix}, nil, m, 1, 2, func(string, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFindings(t *testing.T) {
	plain := func(hertz float64) []byte { return wav(tone(1, 0.25, hertz), 1, 0) }
	clipped := tone(1, 0.5, 100)
	for i := range 7 {
		clipped[100+i] = 1
	}
	clipped[300], clipped[301] = -1, -1 // two in a row do not count
	r := reportOf(t, anyLength,
		recording{"anna/1", "as many as the others", plain(100)},
		recording{"anna/2", "as much as the others", plain(110)},
		recording{"ben/3", "as many as the others", plain(120)},
		recording{"ben/4", "again the first sound", plain(100)},
		recording{"ben/5", "as loud as can be had", wav(clipped, 1, 0)},
		recording{
			"ben/6", "a break at the start.", wav(join(tone(1.5, 0, 100), tone(1, 0.25, 130), tone(0.5, 0, 100)), 1, 0),
		}, recording{"ben/7", "no sound at all there", wav(tone(1, 0, 100), 1, 0)}, recording{
			"ben/8", "two opposite channels", wav(tone(1, 0.25, 140), 2, -1),
		}, recording{"ben/9", "cut off at the start.", plain(150)[:5000]}, recording{
			"cid/1", "a", wav(tone(1, 0.25, 160), 2, 1),
		}, recording{"cid/2", "too short, a click...", wav(tone(0.01, 0.25, 170), 1, 0)},
	)
	var unusable []string
	for _, u := range r.Unusable {
		unusable = append(unusable,
			fmt.Sprintf("%d %s %s: %s", u.Line.Line, u.ID, u.Stage, strings.Split(u.Reason, "; copy the recording")[0]))
	}
	want := []string{
		"7 ben/7 decode: silent: no sample is above -80 dB of full scale",
		"8 ben/8 decode: silent: no sample of the mean of its 2 channels is above -80 dB of full scale; channels of " +
			"opposite phase cancel each other",
		`9 ben/9 index: truncated: the "data" chunk declares 16000 bytes, but the file has 4956`,
		"11 cid/2 index: the clip has 80 samples at 8000 Hz, fewer than the 200 of one window of the features",
	}
	if !reflect.DeepEqual(unusable, want) {
		t.Errorf("unusable:\n%s", strings.Join(unusable, "\n"))
	}
	for _, c := range []struct{ name, got, want string }{
		{"usable", fmt.Sprint(r.Usable), "{7 9}"},
		{"same audio", fmt.Sprint(r.SameAudio), "[[{1 anna/1} {4 ben/4}]]"},
		{"same text", fmt.Sprint(r.SameText), "[[{1 anna/1} {3 ben/3}]]"},
		{"clipped", fmt.Sprint(r.Clipped), "[{{5 ben/5} 7}]"},
		{"silence", fmt.Sprint(r.LongSilence), "[{{6 ben/6} 1.5 0.5}]"},
		{"odd rates", fmt.Sprint(r.OddRate), "[{{6 ben/6} 7} {{10 cid/1} 1}]"},
		{"speakers", fmt.Sprint(r.Speakers), "[{ben {4 6}} {anna {2 2}} {cid {1 1}}]"},
		{"languages", fmt.Sprint(r.Languages), "[{en {7 9}}]"},
		{"channels", fmt.Sprint(r.Channels), "[{1 {6 8}} {2 {1 1}}]"},
		{"rates", fmt.Sprint(r.SampleRates), "[{8000 Hz {7 9}}]"},
		{"silent share", fmt.Sprintf("%.2f", r.Measures.Silence), "0.22"},
		{"level", fmt.Sprintf("%.1f", r.Level.Median), "-15.1"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

// TestTrained: a clip beyond the limits is left out by name, and not read. One that cannot be decoded is counted, as at
// the start of a run.
func TestTrained(t *testing.T) {
	m := &manifest.Bundle{
		Features: manifest.Features{SampleRate: rate, HopLength: 100, Center: true},
		Buckets:  []manifest.Bucket{{"T_text": 20, "T_wav": 8000, "T_mel": 81, "T_ref": 4000}},
		Dynamic:  manifest.Bucket{"T_text": 20, "T_wav": 16000},
	}
	list := []recording{
		{"1", "one", wav(tone(1, 0.25, 100), 1, 0)},
		{"2", "two", wav(tone(2, 0.25, 100), 1, 0)},
		{"3", "three", wav(tone(4, 0, 100), 1, 0)}, // no run finds that it is silent
		{"4", "silent", wav(tone(1, 0, 100), 1, 0)},
	}
	r := reportOf(t, m, list...)
	got := r.Trained
	got.Padding, got.fit = 0, ""
	used := report.DataList{Clips: 3, Seconds: 4, LeftOut: []report.LeftOut{
		{Reason: "longer than 2.00 s", File: "excluded.jsonl", Clips: 1, Seconds: 4},
	}}
	want := (Trained{DataList: used, ClipShare: 3. / 4, SecondShare: 4. / 8, Buckets: 2})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := fmt.Sprint(
		len(r.Excluded), r.Excluded[0].Line, len(r.Unusable), r.Unusable[0].Line,
	); got != "1 {3 3} 1 {4 4}" {
		t.Errorf("left out: %s", got)
	}
	m.Dynamic["T_wav"] = 1000
	ix := open(t, list...)
	_, err := check(t.Context(), ix, sides{train: ix}, nil, m, 1, 2, func(string, int, int) {})
	if !errors.Is(err, dataset.ErrNoRows) {
		t.Errorf("nothing fits: %v", err)
	}
}

func TestDistribution(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Distribution
	}{
		{nil, Distribution{Histogram: Histogram{Counts: []int{}}}},
		{[]float64{3}, Distribution{3, 3, 3, 3, Histogram{3, 0.01, []int{1}}}},
		{[]float64{-2.5, 0, 7.5, 7}, Distribution{
			-2.5, 3, 3.5, 7.5,
			Histogram{-2.5, 0.5, []int{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}},
		}},
	} {
		if got := newDistribution(c.values); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
}

// TestPictures: each picture has a bar for each bin, within the plot.
func TestPictures(t *testing.T) {
	r := reportOf(t, anyLength, recording{"1", "one", wav(tone(1, 0.25, 100), 1, 0)},
		recording{"2", "two", wav(tone(1.5, 0.5, 100), 1, 0)})
	dir := t.TempDir()
	if err := r.draw(dir); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]Distribution{
		"durations": r.Duration, "characters-per-second": r.Rate, "levels": r.Level,
	} {
		data, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(data), "<rect") - 1; got != len(d.Histogram.Counts) {
			t.Errorf("%s has %d bars, want %d", name, got, len(d.Histogram.Counts))
		}
	}
	for most, want := range map[int]string{
		1: "[0 1]", 5: "[0 1 2 3 4 5]", 9: "[0 2 4 6 8]", 94: "[0 20 40 60 80]", 600: "[0 200 400 600]",
	} {
		if got := fmt.Sprint(marks(most)); got != want {
			t.Errorf("marks up to %d: %s, want %s", most, got, want)
		}
	}
}

// TestOddRecordings: a recording that is read although its file is not whole is listed with what is wrong.
func TestOddRecordings(t *testing.T) {
	plain := func(hertz float64) []byte { return wav(tone(1, 0.25, hertz), 1, 0) }
	r := reportOf(t, anyLength, recording{"anna/1", "as it should be", plain(100)},
		recording{"anna/2", "cut off at the end", plain(110)[:12044]})
	got := fmt.Sprint(r.OddRecordings)
	if got != "[{{2 anna/2} its end is missing: it was read up to there}]" || len(r.Unusable) != 0 {
		t.Errorf("odd recordings %s, unusable %v", got, r.Unusable)
	}
	var out strings.Builder
	err := r.write(&out)
	if err != nil || !strings.Contains(
		out.String(), "- 1 clip of recordings with something wrong\n             line 2, anna/2: its end is missing",
	) {
		t.Errorf("%v: %s", err, out.String())
	}
}
