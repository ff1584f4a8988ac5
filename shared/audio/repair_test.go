package audio

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestAdviceWorks: the command of each refusal, followed to the letter by a shell, gives a file that is read: in place
// of the old one, or before it in the order of metadata.csv.
func TestAdviceWorks(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed")
	}
	dir := filepath.Join(t.TempDir(), "it's a folder; $HOME")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "source.wav")
	samples := make([]float32, 24000)
	for i := range samples {
		samples[i] = float32(i%200)/400 - 0.25
	}
	if err := os.WriteFile(source, wavFile(3, 24000, samples...), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range refusedFiles(t) {
		t.Run(c.name, func(t *testing.T) { c.follow(t, dir, source) })
	}
}

// refusedFile is a file that is refused: its name, the arguments with which FFmpeg makes it, and what is done to it
// then.
type refusedFile struct {
	name    string
	encoder string
	spoil   func([]byte) []byte
	err     string
}

func refusedFiles(t *testing.T) []refusedFile {
	t.Helper()
	vorbis, err := os.ReadFile("testdata/vorbis-22050-1.ogg")
	if err != nil {
		t.Fatal(err)
	}
	none := func(b []byte) []byte { return b }
	tail := func(b []byte) []byte { return b[:len(b)/4] }
	return []refusedFile{
		{"alac.m4a", "-c:a alac", none, "MP4 (M4A, AAC or ALAC) is not read"},
		{"aac.m4a", "-c:a aac", none, "MP4 (M4A, AAC or ALAC) is not read"},
		{"aac in.wav", "-c:a aac -f adts", none, "AAC is not read"},
		{"x.aac", "-c:a aac", none, "AAC is not read"},
		{
			"tagged.mp3", "-c:a aac -f adts",
			func(b []byte) []byte { return append([]byte("ID3\x04\x00\x00\x00\x00\x00\x00"), b...) }, "AAC is not read",
		},
		{"x.wma", "-c:a wmav2", none, "WMA is not read"},
		{"x.aiff", "", none, "AIFF is not read"},
		{"x.au", "", none, "AU is not read"},
		{"x.caf", "", none, "Core Audio is not read"},
		{"x.wv", "", none, "WavPack is not read"},
		{"x.mka", "-c:a flac", none, "Matroska or WebM is not read"},
		{"adpcm.wav", "-c:a adpcm_ima_wav", none, "IMA ADPCM samples"},
		{"ms.WAV", "-c:a adpcm_ms", none, "Microsoft ADPCM samples"},
		{"mp3.wav", "-c:a libmp3lame", none, "MP3 samples"},
		{"layer2.mp2", "-c:a mp2", none, "layer 2 of MPEG audio"},
		{"layer2.mp3", "-c:a mp2 -f mp2", none, "layer 2 of MPEG audio"},
		{"truncated.wav", "-c:a pcm_s16le", tail, "truncated"},
		{
			"truncated.flac", "-c:a flac -frame_size 1024", func(b []byte) []byte { return b[:42+(len(b)-42)/3] },
			"truncated",
		},
		{"damaged.flac", "-c:a flac -frame_size 1024", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "damaged"},
		{
			"damaged.ogg", "-c:a libvorbis -page_duration 100000",
			func(b []byte) []byte { b[len(b)*3/4] ^= 1; return b }, "damaged",
		},
		{
			"junk.mp3", "-c:a libmp3lame -ar 44100",
			func(b []byte) []byte { return slices.Insert(b, len(b)/2, []byte("other bytes")...) }, "damaged",
		},
		{"cut.mp3", "-c:a libmp3lame -ar 44100", tail, "truncated"},
		{"frames.wav", "-c:a pcm_s16le", func(b []byte) []byte { b[32] = 4; return b }, "frames of 4 bytes"},
		{"chained.ogg", "", func([]byte) []byte { return slices.Concat(vorbis, vorbis) }, "several streams"},
	}
}

// follow makes the file in a new folder of dir and follows the advice.
func (c *refusedFile) follow(t *testing.T, dir, source string) {
	t.Helper()
	folder, err := os.MkdirTemp(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, c.name)
	made := exec.Command("ffmpeg",
		slices.Concat([]string{"-v", "error", "-y", "-i", source}, strings.Fields(c.encoder), []string{path})...)
	if c.name != "chained.ogg" {
		if out, err := made.CombinedOutput(); err != nil {
			t.Skipf("ffmpeg cannot make it: %s", out)
		}
	}
	b, _ := os.ReadFile(path)
	if err := os.WriteFile(path, c.spoil(b), 0o666); err != nil {
		t.Fatal(err)
	}
	err = openAndRead(path)
	if err == nil || !strings.Contains(err.Error(), c.err) {
		t.Fatalf("error %v, want %q", err, c.err)
	}
	_, command, ok := strings.Cut(hint.Of(err), ": ")
	if !ok {
		t.Fatalf("hint %q", hint.Of(err))
	}
	if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	ext := filepath.Ext(path)
	if lower := strings.ToLower(ext); lower != ".wav" && lower != ".flac" {
		path = strings.TrimSuffix(path, ext) + ".flac"
	}
	if err := openAndRead(path); err != nil {
		t.Errorf("after %s: %v", command, err)
	}
}

func openAndRead(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return new(Reader).Read(make([]float32, f.Frames), f, 0)
}
