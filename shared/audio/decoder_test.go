package audio

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestReadAtRates: Read is the mean of the channels, which a Decoder gives in parts as well, with the same bits. At the
// file's own rate it is what a Reader gives.
func TestReadAtRates(t *testing.T) {
	files := []string{flacFile, write(t, "x.wav", wavFile(3, 22050, 0.25, 1.5, -0.5, -2))}
	for _, c := range lossy {
		files = append(files, filepath.Join("testdata", c.name))
	}
	for _, file := range files {
		info, own := all(t, file)
		for _, rate := range []int{info.SampleRate, 16000, 22050, 24000, 44100, 44101} {
			whole, err := Read(file, rate)
			if err != nil || len(whole) != Samples(info.Frames, info.SampleRate, rate) {
				t.Fatalf("%s at %d Hz: %d samples, %v", file, rate, len(whole), err)
			}
			if slices.Max(whole) > 1 || slices.Min(whole) < -1 || slices.Max(whole) < 0.01 {
				t.Errorf("%s at %d Hz: samples of %v to %v", file, rate, slices.Min(whole), slices.Max(whole))
			}
			if rate == info.SampleRate {
				limit(own)
				if !slices.Equal(whole, own) {
					t.Errorf("%s at its own rate differs from what is in it", file)
				}
			}
			parts(t, file, rate, whole)
		}
	}
}

// parts reads a file in stretches.
func parts(t *testing.T, file string, rate int, whole []float32) {
	t.Helper()
	d := NewDecoder(rate)
	f, err := d.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for from := 0; from < len(whole); from += len(whole)/3 + 1 {
		dst := make([]float32, min(501, len(whole)-from))
		if err := d.Read(dst, f, f.Whole(), from); err != nil || !slices.Equal(dst, whole[from:][:len(dst)]) {
			t.Errorf("%s at %d Hz: %d samples from %d differ; %v", file, rate, len(dst), from, err)
		}
	}
	// A part has the bits of a file of that part.
	own := make([]float32, f.Frames/2)
	if err := d.Reader.Read(own, f, 1); err != nil {
		t.Fatal(err)
	}
	want, err := Read(write(t, "part.wav", wavFile(3, uint32(f.SampleRate), own...)), rate)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, len(want))
	if err := d.Read(got, f, Part{1, len(own)}, 0); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s at %d Hz: a part differs from a file of that part; %v", file, rate, err)
	}
	for _, c := range []struct {
		n, from int
		part    Part
		err     string
	}{
		{1, len(whole), f.Whole(), "asked for"},
		{1, -1, f.Whole(), "asked for"},
		{0, 0, Part{0, f.Frames + 1}, "frames 0 to"},
		{0, 0, Part{-1, 1}, "frames -1 to 0"},
		{0, 0, Part{f.Frames, 0}, ""},
	} {
		err := d.Read(make([]float32, c.n), f, c.part, c.from)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %d samples from %d of %v: error %v, want %q", file, c.n, c.from, c.part, err, c.err)
		}
	}
}

// TestReadRefuses: the error names the file once, and the reason, and has the hint of opening it.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	good := write(t, "x.wav", wavFile(3, 48000, 1))
	long := filepath.Join(dir, "long.wav")
	header := wavFile(3, 4000)
	header[40], header[41], header[42], header[43] = 0x80, 0x26, 0x6f, 3 // 4*4000*3601 bytes
	write(t, long, header)
	if err := os.Truncate(long, int64(len(header))+0x36f2680); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file      string
		rate      int
		err, hint string
	}{
		{good, 48000, "", ""},
		{good, 3999, "a sample rate of 3999 Hz was asked for, outside 4000..384000", ""},
		{good, 0, "a sample rate of 0 Hz", ""},
		{write(t, "n.wav", wavFile(3, 48000)), 48000, "the audio has no samples", "remove the file"},
		{write(t, "nan.wav", wavFile(3, 48000, float32(math.NaN()))), 48000, "", "remove the file"},
		{write(t, "x.m4a", []byte("\x00\x00\x00\x20ftypM4A ")), 48000, "is not read", ".flac, or remove the file"},
		{filepath.Join(dir, "nothing"), 48000, "no such file", ""},
		{dir, 48000, "a folder, not a regular file", ""},
		{
			long, 48000, "it has 3601 s, more than 3600",
			"cut it, or read parts of it with a Decoder, or remove the file",
		},
	} {
		_, err := Read(c.file, c.rate)
		if c.err+c.hint == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || strings.Count(err.Error(), c.file) != 1 || !strings.Contains(err.Error(), c.err) ||
			!strings.Contains(hint.Of(err), c.hint) {
			t.Errorf("%s at %d Hz: error %v (hint %q), want %q (%q)", c.file, c.rate, err, hint.Of(err), c.err, c.hint)
		}
	}
}

// closer is a source that counts how often it is closed.
type closer struct {
	*strings.Reader
	closed int
}

func (c *closer) Close() error             { c.closed++; return nil }
func (*closer) Name() string               { return "memory" }
func (*closer) Stat() (fs.FileInfo, error) { return nil, errors.New("no file") }

// TestSource: a File closes its source, also one that it refuses.
func TestSource(t *testing.T) {
	good := &closer{Reader: strings.NewReader(string(wavFile(3, 48000, 0.5)))}
	f, err := New(good)
	if err != nil || f.Frames != 1 || good.closed != 0 {
		t.Fatalf("%+v, %v, closed %d times", f, err, good.closed)
	}
	if err := f.Close(); err != nil || good.closed != 1 {
		t.Errorf("closed %d times, %v", good.closed, err)
	}
	bad := &closer{Reader: strings.NewReader("hello, world")}
	if _, err := new(Reader).New(bad); err == nil || bad.closed != 1 {
		t.Errorf("closed %d times, %v", bad.closed, err)
	}
}
