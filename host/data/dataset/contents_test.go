package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestContents: the identity of a data set follows the bytes of its recordings, also where length and time stay.
func TestContents(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "train.jsonl")
	write(t, list, []byte(`{"audio_filepath": "a.wav", "text": "a", "duration": 0.01}
{"audio_filepath": "a.wav", "text": "b", "offset": 0.01}
{"audio_filepath": "b.wav", "text": "c"}
`))
	file := func(name string, samples []int16) {
		t.Helper()
		write(t, filepath.Join(dir, name), wavFile(22050, 1, samples))
		past := time.Unix(1e9, 0)
		if err := os.Chtimes(filepath.Join(dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	file("a.wav", ramp(0, 500))
	file("b.wav", ramp(0, 500))
	cfg := Config{Dir: list, SampleRate: 22050, CacheDir: t.TempDir()}
	read := func() *Index {
		t.Helper()
		ix := open(t, cfg)
		if err := ix.ReadContents(t.Context(), nil); err != nil || ix.CacheError != nil || ix.Contents == "" {
			t.Fatal(ix.Contents, err, ix.CacheError)
		}
		return ix
	}
	first := read()
	if again := read(); again.Contents != first.Contents || !again.Cached || len(again.recordings.all) != 2 {
		t.Errorf("of the same files: %+v, then %+v", first, again)
	}
	future := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "a.wav"), future, future); err != nil {
		t.Fatal(err)
	}
	if again := read(); again.Contents != first.Contents || len(again.recordings.all) != 3 || again.Cached {
		t.Errorf("with another time: %+v, was %+v", again, first)
	}
	if again := read(); len(again.recordings.all) != 2 {
		t.Errorf("%d recordings are known, want 2", len(again.recordings.all))
	}
	file("b.wav", ramp(1, 500))
	second := read()
	if second.Contents == first.Contents {
		t.Error("another content of the same length and time is not noticed")
	}
	if err := os.WriteFile(second.recordings.file.Path, []byte("damaged"), 0o666); err != nil {
		t.Fatal(err)
	}
	ix := open(t, cfg)
	if err := ix.ReadContents(t.Context(), nil); err != nil || ix.Contents != second.Contents {
		t.Errorf("a damaged cache changes the contents: %v", err)
	}
}

// TestKnownContentsAreNotRead: a file that has not changed is not read again, and progress counts those that are.
func TestKnownContentsAreNotRead(t *testing.T) {
	dir := folder(t, "1|one", "2|two")
	clip(t, dir, "1", 22050, 1, ramp(0, 50))
	clip(t, dir, "2", 22050, 1, ramp(0, 60))
	cfg := Config{Dir: dir, SampleRate: 22050, CacheDir: t.TempDir()}
	read := func() (files int, state []byte) {
		t.Helper()
		ix := open(t, cfg)
		if err := ix.ReadContents(t.Context(), func(_ string, done, of int) { files = of }); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(ix.recordings.file.Path)
		if err != nil {
			t.Fatal(err)
		}
		return files, data
	}
	n, state := read()
	if again, same := read(); n != 2 || again != 0 || !bytes.Equal(state, same) {
		t.Errorf("%d files were read, then %d", n, again)
	}
	clip(t, dir, "2", 22050, 1, ramp(0, 61))
	if n, _ := read(); n != 1 {
		t.Errorf("%d files were read after one has changed", n)
	}
}

// TestLinkedIndex: no index is written through a link in the cache folder.
func TestLinkedIndex(t *testing.T) {
	cache, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(cache, "index")); err != nil {
		t.Fatal(err)
	}
	r, err := loadRecordings(filepath.Join(cache, "index"), "dir", "list", nil)
	if err == nil {
		t.Error("an index was looked for through a link")
	}
	r.changed = true
	if err := r.store(); err == nil {
		t.Error("an index was written through a link")
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
