package datafolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// write writes a file below a folder.
func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// recording is one of 8000 Hz in mono, of samples of one value.
func recording(samples int, value int16) []byte {
	return wav.File(8000, slices.Repeat([]int16{value}, samples))
}

func open(t *testing.T, dir, kind, cache string) *Folder {
	t.Helper()
	f, err := Open(t.Context(), Config{Title: "mix.noise", Path: dir, Kind: kind, CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	if f.CacheError != nil {
		t.Error(f.CacheError)
	}
	return f
}

func names(f *Folder) (all []string) {
	for _, file := range f.Files {
		all = append(all, file.Name)
	}
	return all
}

// TestOpen: files are listed by name, hidden ones are not, links are followed but not back, and what is no recording is
// left out with its reason.
func TestOpen(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	write(t, dir, "b.wav", recording(8000, 1))
	write(t, dir, "a/x.wav", recording(4000, 2))
	write(t, dir, "a.wav", recording(800, 3))
	write(t, dir, ".hidden.wav", recording(8000, 4))
	write(t, dir, ".git/c.wav", recording(8000, 5))
	write(t, dir, "LICENSE", []byte("free"))
	write(t, dir, "empty.wav", recording(0, 0))
	write(t, dir, "bad\xff.wav", recording(10, 0))
	write(t, far, "far.wav", recording(8000, 6))
	for name, to := range map[string]string{
		"linked": far, "linked.wav": filepath.Join(far, "far.wav"), "a/up": "..", "lost.wav": "nowhere", "self": "self",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, dir, manifest.AudioData, "")
	want := []string{"a.wav", "a/x.wav", "b.wav", "linked.wav", "linked/far.wav"}
	if !slices.Equal(names(f), want) {
		t.Errorf("%q, want %q", names(f), want)
	}
	if f.Seconds() != 0.1+0.5+1+1+1 || f.Bytes() != 5*44+2*(800+4000+3*8000) {
		t.Error(f.Seconds(), f.Bytes())
	}
	var left []string
	for _, l := range f.LeftOut {
		left = append(left, l.String())
	}
	for i, want := range []string{
		"LICENSE: ", "bad\xff.wav: the name is not UTF-8", "empty.wav: the audio has no samples",
		"lost.wav: a link that leads nowhere", "self: a link to itself",
	} {
		if i >= len(left) || !strings.HasPrefix(left[i], want) {
			t.Errorf("left out %q, want %q", left, want)
		}
	}
	if all := open(t, dir, manifest.FileData, ""); len(all.Files) != len(want)+2 || all.Seconds() != 0 {
		t.Errorf("any files: %q", names(all))
	}
}

// TestHash: a folder is known by names and contents. Its path and the times of its files do not matter.
func TestHash(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "one/a", []byte("first"))
	write(t, dir, "one/b", []byte("second"))
	one := open(t, filepath.Join(dir, "one"), manifest.FileData, "").Hash
	for name, c := range map[string]struct {
		files map[string]string
		same  bool
	}{
		"moved":    {map[string]string{"a": "first", "b": "second"}, true},
		"renamed":  {map[string]string{"a": "first", "c": "second"}, false},
		"swapped":  {map[string]string{"a": "second", "b": "first"}, false},
		"changed":  {map[string]string{"a": "first", "b": "Second"}, false},
		"removed":  {map[string]string{"a": "first"}, false},
		"added":    {map[string]string{"a": "first", "b": "second", "c": "third"}, false},
		"in a dir": {map[string]string{"a": "first", "x/b": "second"}, false},
	} {
		for file, text := range c.files {
			write(t, filepath.Join(dir, name), file, []byte(text))
		}
		if got := open(t, filepath.Join(dir, name), manifest.FileData, "").Hash; (got == one) != c.same {
			t.Errorf("%s: same %v, want %v", name, got == one, c.same)
		}
	}
}

// TestCache: a start reads only files that it does not know in their state. A file that was restored with its time is
// another state.
func TestCache(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	write(t, dir, "a.wav", recording(80, 1))
	write(t, dir, "b.wav", recording(80, 2))
	read := func() (n int) {
		t.Helper()
		f, err := Open(t.Context(), Config{
			Title: "mix.noise", Path: dir, Kind: manifest.AudioData, CacheDir: cache,
			Progress: func(_ string, _, of int) { n = of },
		})
		if err != nil || f.CacheError != nil || f.Seconds() != 0.02 ||
			f.Hash != open(t, dir, manifest.AudioData, "").Hash {
			t.Fatal(err, f)
		}
		return n
	}
	if n := read(); n != 2 {
		t.Errorf("the first start reads %d files", n)
	}
	if n := read(); n != 0 {
		t.Errorf("the second start reads %d files", n)
	}
	info, err := os.Stat(filepath.Join(dir, "b.wav"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "b.wav", recording(80, 3))
	if err := os.Chtimes(filepath.Join(dir, "b.wav"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if n := read(); n != 1 {
		t.Errorf("after a change, %d files are read", n)
	}
	// Damage is like no cache.
	all, err := filepath.Glob(filepath.Join(cache, "folder-*.bin"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	data, err := os.ReadFile(all[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	write(t, cache, filepath.Base(all[0]), data)
	if n := read(); n != 2 {
		t.Errorf("with a damaged cache, %d files are read", n)
	}
}

// TestRefused: each folder that cannot be used is an error with a hint that works.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file/noise.wav", recording(80, 1))
	write(t, dir, "texts/readme", []byte("no recording"))
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want, advice string }{
		{"none", "there is no such folder", "name the folder where it is with --plugin-data mix.noise=DIR"},
		{
			"file/noise.wav", "that is a file, not a folder",
			"name the folder that it is in with --plugin-data mix.noise=" + filepath.Join(dir, "file"),
		},
		{
			"empty", "there are no files in it",
			"put recordings into it, or name another folder with --plugin-data mix.noise=DIR",
		},
		{"texts", "no recording can be used: left out 1 file, the first because: readme: ", "put recordings into it"},
	} {
		path := filepath.Join(dir, c.path)
		_, err := Open(t.Context(), Config{Title: "mix.noise", Path: path, Kind: manifest.AudioData})
		if err == nil || !strings.HasPrefix(err.Error(), "data folder mix.noise: "+path+": "+c.want) ||
			!strings.HasPrefix(hint.Of(err), c.advice) {
			t.Errorf("%s: %v\n%s", c.path, err, hint.Of(err))
		}
	}
	if os.Geteuid() == 0 {
		return // who reads everything
	}
	write(t, dir, "closed/in/a.wav", recording(80, 1))
	in := filepath.Join(dir, "closed", "in")
	if err := errors.Join(os.Chmod(in, 0), os.Chmod(filepath.Join(dir, "file/noise.wav"), 0)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(in, 0o777)
	_, err := Open(t.Context(), Config{Title: "x", Path: filepath.Dir(in)})
	if !strings.Contains(hint.Of(err), "chmod") {
		t.Error(err)
	}
}

// TestLists: the list of a run folder has the files as they were, and tells what has changed.
func TestLists(t *testing.T) {
	dir, run := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b", "c\u202e\n"} {
		write(t, dir, name, []byte(name))
	}
	if got, err := ReadLists(run); got != nil || err != nil {
		t.Error(got, err)
	}
	f := open(t, dir, manifest.FileData, "")
	if err := WriteLists(run, []Folder{*f}); err != nil {
		t.Fatal(err)
	}
	lists, err := ReadLists(run)
	was := lists["mix.noise"]
	if err != nil || Hash(was) != f.Hash || len(Differences(was, f.Files)) != 0 {
		t.Fatal(err, lists)
	}
	if err := os.Remove(filepath.Join(dir, "c\u202e\n")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "b", []byte("other"))
	write(t, dir, "d", nil)
	got := Differences(was, open(t, dir, manifest.FileData, "").Files)
	if want := []string{`removed: c\u202e\n`, "changed: b", "added: d"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := WriteLists(run, nil); err != nil {
		t.Fatal(err)
	}
	if lists, err := ReadLists(run); len(lists) != 0 || err != nil {
		t.Error(lists, err)
	}
	write(t, run, "plugin-data.jsonl", []byte("{}\n"))
	if _, err := ReadLists(run); err == nil {
		t.Error("a list of nothing is read")
	}
}

// BenchmarkKnown is a start with 2,000 known files.
func BenchmarkKnown(b *testing.B) {
	dir, cache := b.TempDir(), b.TempDir()
	for i := range 2000 {
		file := filepath.Join(dir, fmt.Sprintf("%04d.wav", i))
		if err := os.WriteFile(file, recording(8000, int16(i)), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	cfg := Config{Title: "mix.noise", Path: dir, Kind: manifest.AudioData, CacheDir: cache}
	if _, err := Open(b.Context(), cfg); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Open(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
	}
}
