package dataset

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// states are those that Open notes.
func states(t *testing.T, ix *Index) (out []half) {
	t.Helper()
	for _, r := range ix.Rows {
		info, err := os.Stat(r.Path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, stateOf(r.Path, info))
	}
	return out
}

// TestContents: the identity of a data set follows the bytes of its recordings, also where length and time stay.
func TestContents(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	ix := &Index{Dir: dir, List: "metadata.csv"}
	for i := range 3 {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, bytes.Repeat([]byte{byte(i)}, 1000), 0o666); err != nil {
			t.Fatal(err)
		}
		ix.Rows = append(ix.Rows, Row{Path: path}, Row{Path: path}) // two clips of one recording
	}
	read := func() string {
		t.Helper()
		ix.Contents, ix.states = "", states(t, ix)
		if err := ix.ReadContents(t.Context(), cache); err != nil || ix.CacheError != nil || ix.Contents == "" {
			t.Fatal(ix.Contents, err, ix.CacheError)
		}
		return ix.Contents
	}
	first, file := read(), ix.contentsFile(cache)
	if read() != first {
		t.Error("other contents of the same files")
	}
	if n := len(loadContents(file)); n != 3 {
		t.Errorf("%d files are known, want 3", n)
	}
	past := time.Unix(1e9, 0)
	if err := os.Chtimes(ix.Rows[2].Path, past, past); err != nil {
		t.Fatal(err)
	}
	if read() != first {
		t.Error("another time is another content")
	}
	if err := os.WriteFile(ix.Rows[2].Path, bytes.Repeat([]byte{9}, 1000), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(ix.Rows[2].Path, past, past); err != nil {
		t.Fatal(err)
	}
	if read() == first {
		t.Error("another content of the same length and time is not noticed")
	}
	if err := os.WriteFile(file, []byte("damaged"), 0o666); err != nil {
		t.Fatal(err)
	}
	if second := read(); second == first || second != read() {
		t.Error("a damaged cache changes the contents")
	}
}

// TestKnownContentsAreNotRead: a file that has not changed is not read again.
func TestKnownContentsAreNotRead(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "clip")
	if err := os.WriteFile(path, []byte("samples"), 0o666); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	ix := &Index{Dir: dir, List: "l", Rows: []Row{{Path: path}}}
	marked := known{stateOf(path, info), half{1, 2, 3}}
	if err := storeContents(ix.contentsFile(cache), []known{marked}); err != nil {
		t.Fatal(err)
	}
	ix.states = []half{marked.state}
	if err := ix.ReadContents(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	with := ix.Contents
	if err := ix.ReadContents(t.Context(), ""); err != nil || ix.Contents == with {
		t.Errorf("the file was read although its content is known (%v)", err)
	}
}
