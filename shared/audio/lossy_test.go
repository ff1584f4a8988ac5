package audio

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// lossy are the files of testdata. tolerance is the largest difference of a sample from the reference, which has 16
// bits: half a step of 2^-16 is its own.
var lossy = []struct {
	name      string
	rate      int
	channels  int
	tolerance float64
}{
	{"vorbis-22050-1.ogg", 22050, 1, 1.6e-5},
	{"vorbis-44100-2.ogg", 44100, 2, 1.6e-5},
	{"celt-48000-2.opus", 48000, 2, 5e-5},
	{"silk-48000-1.opus", 48000, 1, 3e-3}, // the reference decoder computes with integers
	{"mpeg1-44100-1.mp3", 44100, 1, 8e-5},
	{"mpeg1-32000-2.mp3", 32000, 2, 2e-3}, // its joint stereo is not exact in short blocks (docs/audio.md)
	{"mpeg2-24000-1.mp3", 24000, 1, 8e-5},
	{"mpeg2-22050-1.mp3", 22050, 1, 1.6e-5},
	{"mpeg25-12000-2.mp3", 12000, 2, 1.6e-5},
	{"mpeg25-8000-1.mp3", 8000, 1, 1.6e-5},
	{"free-16000-2.mp3", 16000, 2, 8e-5}, // the reference has noise of its own
}

// all returns the samples of a file.
func all(t testing.TB, file string) (Info, []float32) {
	t.Helper()
	f, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	samples := make([]float32, f.Frames)
	if err := new(Reader).Read(samples, f, 0); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return f.Info, samples
}

// TestLossy compares length and samples with those of the reference decoders.
func TestLossy(t *testing.T) {
	for _, c := range lossy {
		file := filepath.Join("testdata", c.name)
		info, got := all(t, file)
		_, want := all(t, strings.TrimSuffix(file, filepath.Ext(file))+".flac")
		if info != (Info{c.rate, c.channels, len(want)}) {
			t.Errorf("%s: %+v, want %d samples", c.name, info, len(want))
			continue
		}
		worst := 0.0
		for i := range got {
			worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
		}
		if worst > c.tolerance {
			t.Errorf("%s: differs by %.2g, tolerance %.2g", c.name, worst, c.tolerance)
		}
	}
}

// TestLossyParts: a part has the bits that it has in the whole file, also after another file.
func TestLossyParts(t *testing.T) {
	var r Reader
	for _, c := range lossy {
		file := filepath.Join("testdata", c.name)
		_, whole := all(t, file)
		f, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for from := 0; from < len(whole); from += len(whole)/5 - 1 {
			part := make([]float32, min(700, len(whole)-from))
			if err := r.Read(part, f, from); err != nil || !slices.Equal(part, whole[from:from+len(part)]) {
				t.Errorf("%s: %d samples from %d differ; %v", c.name, len(part), from, err)
			}
		}
		for _, part := range [][2]int{{-1, 1}, {len(whole), 1}} {
			if err := r.Read(make([]float32, part[1]), f, part[0]); err == nil {
				t.Errorf("%s: %d samples from %d were read", c.name, part[1], part[0])
			}
		}
	}
}

// readable opens a file of these bytes and reads all of it. A file with a remark is an error.
func readable(t *testing.T, r *Reader, file string, b []byte) error {
	t.Helper()
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Remarks != 0 {
		return fmt.Errorf("%v (byte %d)", f.Remarks, len(b))
	}
	return r.Read(make([]float32, f.Frames), f, 0)
}

// TestLossyTruncated: a file that lacks its end is read up to there, with a remark, or refused, with the place.
func TestLossyTruncated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	var r Reader
	for _, c := range lossy {
		name := filepath.Join("testdata", c.name)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, whole := all(t, name)
		for n := 100; n < len(b); n += len(b) / 5 {
			if err := os.WriteFile(file, b[:n], 0o666); err != nil {
				t.Fatal(err)
			}
			f, err := Open(file)
			if err != nil {
				if text := err.Error(); !strings.Contains(text, "byte") || hint.Of(err) == "" || n > len(b)*3/4 {
					t.Errorf("%s, %d of %d bytes: %v (hint %q)", c.name, n, len(b), err, hint.Of(err))
				}
				continue
			}
			got := make([]float32, f.Frames)
			err = r.Read(got, f, 0)
			if err != nil || f.Remarks&remark.Cut == 0 || !slices.Equal(got, whole[:len(got)]) {
				t.Errorf("%s, %d of %d bytes: %d samples, %v; %v", c.name, n, len(b), len(got), f.Remarks, err)
			}
			f.Close()
		}
	}
}

// TestLossyDamaged: a page of Ogg with another byte is refused. MP3 has no checksums: there, nothing must go wrong.
func TestLossyDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	var r Reader
	for _, c := range lossy {
		b, err := os.ReadFile(filepath.Join("testdata", c.name))
		if err != nil {
			t.Fatal(err)
		}
		ogg := string(b[:4]) == "OggS"
		for n := 100; n < len(b); n += len(b) / 6 {
			bad := bytes.Clone(b)
			bad[n] ^= 0x55
			if err := readable(t, &r, file, bad); ogg && (err == nil || !strings.Contains(err.Error(), "byte")) {
				t.Errorf("%s, byte %d: %v", c.name, n, err)
			}
		}
	}
}
