package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestFolders: where many files are missing, those that are there are found, and the others cost no call: one that
// comes later is not seen. Elsewhere it is.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a.wav", "Capital.WAV", norm.NFD.String("Größe.wav"), "in/a.wav"} {
		write(t, at(name), []byte("sound"))
	}
	var f folders
	see := func(name string, want bool) {
		t.Helper()
		_, err := f.Stat(at(name))
		if got := err == nil; got != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range manyMissing {
		write(t, at(fmt.Sprintf("%d.wav", i)), []byte("sound"))
		see(fmt.Sprintf("%d.wav", i), true)
		f.Missing(at(fmt.Sprintf("%d.flac", i)))
		f.Missing(at("none/a.wav"))
	}
	for _, name := range []string{"a.wav", "Capital.WAV", norm.NFD.String("Größe.wav"), "0.wav", "in/a.wav"} {
		see(name, true)
	}
	for _, name := range []string{"b.wav", "capital.wav", "a.flac", "none/a.wav", "in/b.wav"} {
		see(name, false)
		write(t, at(name), []byte("sound"))
	}
	for _, name := range []string{"b.wav", "a.flac", "none/a.wav"} {
		see(name, false)
	}
	see("in/b.wav", true)
	for _, name := range []string{strings.Repeat("x", 300), "."} { // other errors stay
		if _, err := f.Stat(dir + "/" + name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManyMissing: recordings after many that are missing are found in all forms of their names.
func TestManyMissing(t *testing.T) {
	lines := make([]string, 0, 2*manyMissing+4)
	for i := range 2 * manyMissing {
		lines = append(lines, fmt.Sprintf("missing%d|a", i))
	}
	dir := folder(t, append(lines, "Größe|a", "Zoë/é|a", "loud|a", "phone|a")...)
	for _, name := range []string{norm.NFD.String("Größe.wav"), norm.NFD.String("Zoë/é.wav"), "loud.WAV"} {
		write(t, filepath.Join(dir, "wavs", name), wavFile(8000, 1, ramp(0, 50)))
	}
	write(t, filepath.Join(dir, "wavs/phone.m4a"), []byte("sound"))
	ix := open(t, Config{Dir: dir, SampleRate: 8000})
	if len(ix.Rows) != 3 || len(ix.Rejected) != 2*manyMissing+1 {
		t.Fatalf("%d rows, %d rejected", len(ix.Rows), len(ix.Rejected))
	}
	if last := ix.Rejected[2*manyMissing]; !strings.Contains(last.Reason, "convert with: ffmpeg") {
		t.Errorf("%s: %s", last.ID, last.Reason)
	}
}
