package audio

import (
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPython compares with the reader of the Python SDK, which has libsndfile and soxr: WAV and FLAC have the same bits
// at their own rate. docs/plugin-reference.md has the bounds of the others.
func TestPython(t *testing.T) {
	python, err := filepath.Abs("../../.cache/venv-plugin/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("no Python with soundfile and soxr; this makes it: scripts/venv-plugin.sh (%v)", err)
	}
	for _, source := range []string{"testdata/read.py", "../python/xtts_plugin/audio.py"} {
		if _, err := os.ReadFile(source); err != nil { // so that go test runs this again when it has changed
			t.Fatal(err)
		}
	}
	var files []string
	for _, pattern := range []string{"testdata/*.*", "internal/flac/testdata/*.flac"} {
		found, _ := filepath.Glob(pattern)
		for _, file := range found {
			// libsndfile does not read free bit rates as LAME does, and FFmpeg's decoder made that reference.
			if !strings.Contains(".md .py", filepath.Ext(file)) && !strings.HasSuffix(file, "free-16000-2.mp3") {
				files = append(files, file)
			}
		}
	}
	for _, rate := range []int{0, 22050, 24000, 48000} {
		t.Run(strconv.Itoa(rate), func(t *testing.T) {
			dir := t.TempDir()
			read := exec.Command(python, slices.Concat([]string{"testdata/read.py", dir, strconv.Itoa(rate)}, files)...)
			read.Env = append(os.Environ(), "PYTHONPATH=../python", "PYTHONDONTWRITEBYTECODE=1")
			if out, err := read.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			waves, _ := filepath.Glob(filepath.Join(dir, "*.wav"))
			if len(files) < 20 || len(waves) != 24 {
				t.Fatalf("%d files, %d WAV files", len(files), len(waves))
			}
			for _, file := range append(waves, files...) {
				likePython(t, file, rate, filepath.Join(dir, filepath.Base(file)+".f32"))
			}
		})
	}
}

// likePython compares a file with what Python reads.
func likePython(t *testing.T, file string, rate int, samples string) {
	t.Helper()
	data, err := os.ReadFile(samples)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, len(data)/4)
	if _, err := binary.Decode(data, binary.LittleEndian, want); err != nil {
		t.Fatal(err)
	}
	own := int(want[0])
	want = want[1:]
	if rate == 0 {
		rate = own
	}
	got, err := Read(file, rate)
	if err != nil || len(got) != len(want) {
		t.Errorf("%s at %d Hz: %d samples, Python reads %d; %v", file, rate, len(got), len(want), err)
		return
	}
	worst, energy := 0.0, 0.0
	for i := range got {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		worst, energy = max(worst, d), energy+d*d
	}
	rms := 10 * math.Log10(energy/float64(len(got))+1e-30)
	t.Logf("%-24s %6d -> %6d Hz: at most %.2g, %.0f dB", filepath.Base(file), own, rate, worst, rms)
	lossless := strings.Contains(".wav .flac", filepath.Ext(file))
	limitWorst, limitRMS := 2e-3, -74.0 // SILK, which libopus computes with integers, and joint stereo of MP3
	switch {
	case lossless && own == rate:
		limitWorst, limitRMS = 0, -200
	case own != rate && filepath.Dir(file) != "testdata": // noise and edges in the band where no two filters agree
		limitWorst, limitRMS = 0.11, -56
	case own != rate:
		limitWorst = 6e-3
	}
	if worst > limitWorst || rms > limitRMS {
		t.Errorf("%s from %d to %d Hz differs by %.2g (%.0f dB), more than %.2g (%.0f dB)", filepath.Base(file), own,
			rate, worst, rms, limitWorst, limitRMS)
	}
}
