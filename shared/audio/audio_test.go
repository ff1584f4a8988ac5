package audio

import (
	"bytes"
	"encoding/binary"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/shared/audio/internal/ogg"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func write(t testing.TB, file string, data []byte) string {
	t.Helper()
	if !filepath.IsAbs(file) {
		file = filepath.Join(t.TempDir(), file)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// wavFile returns a WAV file of 32-bit floats, or of another coding that its code names.
func wavFile(code uint16, rate uint32, samples ...float32) []byte {
	le := binary.LittleEndian
	b := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00"), byte(code), byte(code>>8), 1, 0)
	b = le.AppendUint32(b, rate)
	b = le.AppendUint32(b, 4*rate)
	b = append(b, 4, 0, 32, 0)
	b = append(b, "data"...)
	b = le.AppendUint32(b, uint32(4*len(samples)))
	for _, v := range samples {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// oggPage returns an Ogg file of one page with one packet.
func oggPage(packet string) string {
	b := append([]byte("OggS\x00\x06"), make([]byte, 20)...)
	b = append(b, 1, byte(len(packet)))
	b = append(b, packet...)
	binary.LittleEndian.PutUint32(b[22:], ogg.Checksum(b))
	return string(b)
}

const flacFile = "internal/flac/testdata/16-24000-2.flac"

// The content decides the format, not the name.
func TestOpen(t *testing.T) {
	flac, err := os.ReadFile(flacFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file string
		want Info
	}{
		{"a WAV file", write(t, "x.wav", wavFile(3, 48000, 1, 2, 3)), Info{48000, 1, 3}},
		{"a FLAC file", flacFile, Info{24000, 2, 10000}},
		{"FLAC in a .wav", write(t, "x.wav", flac), Info{24000, 2, 10000}},
		{"WAV in a .flac", write(t, "x.flac", wavFile(3, 48000, 1)), Info{48000, 1, 1}},
	} {
		f, err := Open(c.file)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if f.Info != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, f.Info, c.want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: closed again: %v", c.name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ name, head, err, hint string }{
		{"x.wav", "", "the file is empty", replace},
		{"x.wav", "hello, world", "no audio of a known format", replace},
		{"x.wav", "RIFF", "truncated: 4 bytes", replace},
		{"x.wav", "RIFF\x00\x00\x00\x00WAV", "truncated: 11 bytes", replace},
		{"x.wav", "RIFF\x00\x00\x00\x00AVI", "no audio of a known format", replace},
		{"x.flac", "fLa", "truncated: 3 bytes", replace},
		{"x.wav", "R", "no audio of a known format", replace},
		{
			"x.wav", string(wavFile(0x11, 8000, 1)), "IMA ADPCM samples",
			"ffmpeg -i x.wav -c:a pcm_s24le x.new.wav && mv x.new.wav x.wav",
		},
		{"x.wav", string(wavFile(3, 3999, 1)), "sample rate of 3999 Hz is outside 4000..384000", replace},
		{"x.wav", "version https://git-lfs.github.com/spec/v1\noid sha256:", "pointer of Git LFS", "git lfs pull"},
		{
			"a b.mp3", "ID3\x04\x00\x00\x00\x00\x00\x00\xFF\xFD\x90\x64", "layer 2 of MPEG audio",
			"ffmpeg -i 'a b.mp3' -c:a flac 'a b.flac'",
		},
		{"x.mp3", "\xFF\xE3\x90\x64", "truncated: the MP3 frame at byte 0 has 522 bytes", replace},
		{
			"x.flac", "\xFF\xF3\x00\x64", "free bit rate",
			"ffmpeg -i x.flac -c:a flac -sample_fmt s32 -bits_per_raw_sample 24 x.new.flac && mv x.new.flac x.flac",
		},
		{"x.mp3", "\xFF\xFB\x90\x64", "truncated: the MP3 frame at byte 0 has 417 bytes, the file has 4 more", replace},
		{"x.mp3", "ID3\x04\x00\x00\x00\x00\x01\x00", "truncated: the ID3 tag at byte 0 has 138 bytes", replace},
		{"x.aac", "\xFF\xF1\x50\x80", "AAC is not read", "ffmpeg"},
		{"-x.ogg", oggPage("\x80theora"), "film (Theora) in Ogg is not read", "ffmpeg -i -x.ogg -c:a flac -x.flac"},
		{"x.ogg", oggPage("\x7fFLAC\x01\x00\x00\x00fLaC"), "not a FLAC file: only 4 bytes", replace},
		{"x.mp3", "ID3\x04\x00\x00\x00\x00\x00\x00", "only a tag, and no audio", replace},
		{"x.mp3", "ID3\x04\x00\x00\x00\x00\x00\x00\xFF\xF1\x50\x80", "AAC is not read", "ffmpeg -i x.mp3"},
		{"x.oga", oggPage("Speex   1.2"), "Speex in Ogg is not read", "ffmpeg"},
		{"x.ogg", "OggS\x00\x02", "truncated: no whole page at byte 0", replace},
		{"x.m4a", "\x00\x00\x00\x20ftypM4A ", "MP4 (M4A, AAC or ALAC) is not read", "ffmpeg"},
		{"x.aiff", "FORM\x00\x00\x00\x20AIFF", "AIFF is not read", "ffmpeg"},
		{"x.wav", "NIST_1A\n   1024\n", "NIST SPHERE is not read", "ffmpeg"},
		{"x.wav", "RIFX\x00\x00\x00\x20WAVE", "big-endian WAV is not read", "ffmpeg"},
		{"x.w64", "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb", "truncated: 12 bytes", replace},
		{"x.webm", "\x1a\x45\xdf\xa3\x01", "Matroska or WebM is not read", "ffmpeg"},
		{"it's.au", ".snd\x00\x00\x00\x18", "AU is not read", `ffmpeg -i 'it'\''s.au'`},
		{"x.wav", "\xFF\xFE\x00h\x00", "no audio of a known format", replace}, // text in UTF-16
	} {
		path := write(t, c.name, []byte(c.head))
		_, err := Open(path)
		advice := strings.ReplaceAll(hint.Of(err), filepath.Dir(path)+"/", "") // commands have the whole path
		if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(advice, c.hint) ||
			c.hint == "" && advice != "" {
			t.Errorf("%q: error %v (hint %q), want %q (%q)", c.head, err, advice, c.err, c.hint)
		}
		if strings.Contains(advice, "ffmpeg") && advice == hint.Of(err) {
			t.Errorf("%q: hint %q has no folder", c.head, advice)
		}
	}
}

// A file that is not regular is refused at once. A link to a regular file is accepted.
func TestOpenOnlyRegular(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("good"), wavFile(3, 48000, 1))
	for _, err := range []error{
		syscall.Mkfifo(in("fifo"), 0o644),
		os.Mkdir(in("folder"), 0o755),
		os.Symlink("good", in("link")),
		os.Symlink("link", in("link of link")),
		os.Symlink("fifo", in("link of fifo")),
		os.Symlink("nothing", in("dangling")),
		os.Symlink("loop", in("loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for path, want := range map[string]string{
		in("good"): "", in("link"): "", in("link of link"): "",
		in("fifo"): "not a regular file", in("link of fifo"): "not a regular file", in("folder"): "not a regular file",
		in("socket"): "not a regular file", "/dev/zero": "not a regular file", "/dev/tty": "not a regular file",
		in("dangling"): "no such file", in("loop"): "too many levels of symbolic links",
	} {
		done := make(chan error, 1)
		go func() {
			f, err := Open(path)
			if err == nil {
				err = f.Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: error %v, want %q", path, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the open waits", path)
		}
	}
}

func TestRead(t *testing.T) {
	samples := make([]float32, 40_000) // more than one block
	for i := range samples {
		samples[i] = float32(i) / 65536
	}
	var r Reader
	read := func(file string, from, n int) ([]float32, error) {
		t.Helper()
		f, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		dst := make([]float32, n)
		return dst, r.Read(dst, f, from)
	}
	good := write(t, "x.wav", wavFile(3, 48000, samples...))
	for _, part := range [][2]int{{0, 40_000}, {16_383, 2}, {39_999, 1}, {100, 30_000}, {40_000, 0}} {
		got, err := read(good, part[0], part[1])
		if err != nil || !slices.Equal(got, samples[part[0]:part[0]+part[1]]) {
			t.Errorf("%d samples from %d differ; %v", part[1], part[0], err)
		}
	}
	for _, part := range [][2]int{{-1, 1}, {39_999, 2}} {
		if _, err := read(good, part[0], part[1]); err == nil {
			t.Errorf("%d samples from %d of 40000 were read", part[1], part[0])
		}
	}
	whole, err := read(flacFile, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	if part, err := read(flacFile, 7777, 100); err != nil || !slices.Equal(part, whole[7777:7877]) {
		t.Errorf("a part of a FLAC file differs; %v", err)
	}

	for _, v := range []float64{math.NaN(), math.Inf(-1), 3e4} {
		bad := slices.Clone(samples)
		bad[39_000] = float32(v)
		file := write(t, "x.wav", wavFile(3, 48000, bad...))
		if _, err := read(file, 30_000, 10_000); err == nil ||
			!strings.Contains(err.Error(), "sample 39000 of channel 1 is ") {
			t.Errorf("%v: error %v", v, err)
		}
		if _, err := read(file, 0, 39_000); err != nil {
			t.Errorf("%v after the part: %v", v, err)
		}
	}
}

// For any bytes: an error, or readable samples.
func FuzzOpen(f *testing.F) {
	flac, err := os.ReadFile("internal/flac/testdata/8-16000-1.flac")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(flac)
	f.Add(wavFile(3, 48000, 0, 1, -1))
	f.Add(bytes.Repeat([]byte{0xFF}, 64))
	for _, c := range lossy {
		b, err := os.ReadFile(filepath.Join("testdata", c.name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, m := range marks {
		f.Add([]byte(m.mark))
	}
	file := filepath.Join(f.TempDir(), "clip.wav")
	f.Fuzz(func(t *testing.T, b []byte) {
		write(t, file, b)
		a, err := Open(file)
		if err != nil {
			return
		}
		defer a.Close()
		var r Reader
		r.Read(make([]float32, min(a.Frames, 100_000)), a, 0)
	})
}

func BenchmarkRead(b *testing.B) {
	files := []string{flacFile, write(b, "x.wav", wavFile(3, 48000, make([]float32, 48000)...))}
	for _, c := range lossy {
		files = append(files, filepath.Join("testdata", c.name))
	}
	for _, file := range files {
		b.Run(filepath.Base(file), func(b *testing.B) {
			var r Reader
			b.ReportAllocs()
			seconds := 0.0
			for b.Loop() {
				f, err := Open(file)
				if err != nil {
					b.Fatal(err)
				}
				dst := make([]float32, f.Frames)
				if err := r.Read(dst, f, 0); err != nil {
					b.Fatal(err)
				}
				seconds += float64(f.Frames) / float64(f.SampleRate)
				f.Close()
			}
			b.ReportMetric(seconds/b.Elapsed().Seconds(), "audio-s/s")
		})
	}
}
