package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// asNobody calls do without the rights of root.
func asNobody(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // to the end: the thread keeps the id
		if os.Geteuid() == 0 {
			_, _ = unix.SetfsuidRetUid(65534)
		}
		do()
	}()
	<-done
}

// TestWalked: a folder without a list is read with progress, which ends with its last text, and until the context ends.
func TestWalked(t *testing.T) {
	for tree, files := range map[string][]string{
		layout.VCTK:        {"txt/p1/p1_1.txt", "wav48/p1/p1_1.wav", "txt/p2/p2_1.txt", "wav48/p2/p2_1.wav"},
		layout.LibriTTS:    {"train-a/1/1/1_1.normalized.txt", "train-b/2/2/2_1.normalized.txt"},
		layout.LibriSpeech: {"1/1/1-1.trans.txt", "2/2/2-2.trans.txt"},
		layout.MAILABS:     {"en_US/by_book/male/a/x/metadata.csv", "en_US/by_book/male/b/x/metadata.csv"},
	} {
		dir := filepath.Join(t.TempDir(), "Set")
		for _, file := range files {
			write(t, filepath.Join(dir, file), []byte("1-1 text|text|text\n"))
		}
		var seen []string
		cfg := Config{Dir: dir, SampleRate: 8000, Empty: true, Progress: func(what string, done, of int) {
			if of == 0 {
				seen = append(seen, fmt.Sprint(done, " ", what))
			}
		}}
		if _, err := Open(context.Background(), cfg); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(seen, "1 texts of Set") || seen[len(seen)-1] != "2 texts of Set" {
			t.Errorf("%s: %q", tree, seen)
		}
		if tree != layout.VCTK && !slices.Contains(seen, "2 folders of Set") {
			t.Errorf("%s: no folders in %q", tree, seen)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		ended := errors.New("ended")
		cfg.Progress = func(what string, _, _ int) {
			if strings.HasPrefix(what, "texts") {
				cancel(ended)
			}
		}
		if _, err := Open(ctx, cfg); !errors.Is(err, ended) {
			t.Errorf("%s: %v after the end", tree, err)
		}
	}
}

// TestDeadFolder: a link that leads nowhere, in place of a folder of clips, is named.
func TestDeadFolder(t *testing.T) {
	for tree, c := range map[string]struct{ file, link string }{
		layout.VCTK:        {"wav48/p1/p1_1.wav txt/p1/p1_1.txt", "txt/p2"},
		layout.LibriTTS:    {"train-a/1/1/1_1.normalized.txt", "train-a/2"},
		layout.LibriSpeech: {"1/1/1-1.trans.txt", "1/2"},
		layout.MAILABS:     {"en_US/by_book/male/a/x/metadata.csv", "en_US/by_book/male/b"},
	} {
		dir := t.TempDir()
		for file := range strings.FieldsSeq(c.file) {
			write(t, filepath.Join(dir, file), []byte("1-1 text|text|text\n"))
		}
		link := filepath.Join(dir, c.link)
		if err := os.Symlink("nowhere", link); err != nil {
			t.Fatal(err)
		}
		_, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000, Empty: true})
		contains(t, err, link+": a link that leads nowhere")
		if want := "make it lead to its folder, or remove it: rm " + link; err != nil && hint.Of(err) != want {
			t.Errorf("%s: hint %q", tree, hint.Of(err))
		}
	}
}

// TestClosedFolder: a folder of a tree that cannot be read is named, and nothing is left out. The one that each disk
// has does not count.
func TestClosedFolder(t *testing.T) {
	for tree, c := range map[string]struct {
		files  []string
		closed []string // each of them
	}{
		layout.VCTK: {
			[]string{"txt/p1/p1_1.txt", "wav48/p1/p1_1.wav", "txt/p2/p2_1.txt", "wav48/p2/p2_1.wav"},
			[]string{"txt", "txt/p1", "txt/p2", "wav48/p2"},
		},
		layout.LibriTTS: {[]string{
			"train-a/1/1/1_1.normalized.txt", "train-a/1/1/1_1.wav", "train-b/2/2/2_1.normalized.txt",
			"train-b/2/2/2_1.wav",
		},
			[]string{"train-a", "train-b", "train-b/2", "train-b/2/2"}},
		layout.LibriSpeech: {
			[]string{"1/1/1-1.trans.txt", "1/1/1-1-1.wav", "2/2/2-2.trans.txt", "2/2/2-2-1.wav"},
			[]string{"1", "2", "2/2"},
		},
		layout.MAILABS: {[]string{"en_US/by_book/male/a/x/metadata.csv", "en_US/by_book/male/b/x/metadata.csv"},
			[]string{"en_US", "en_US/by_book/male", "en_US/by_book/male/b"}},
	} {
		for _, closed := range c.closed {
			dir := t.TempDir()
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, file := range append(c.files, "lost+found/x") {
				write(t, filepath.Join(dir, file), []byte("1-1 text|text|text\n"))
			}
			chmod := func(name string, mode fs.FileMode) {
				if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
					t.Fatal(err)
				}
			}
			chmod("lost+found", 0)
			asNobody(func() {
				if items, err := layout.Items(tree, dir, false, nil); err != nil || len(items) != 2 {
					t.Errorf("%s: %d items, %v", tree, len(items), err)
				}
			})
			chmod(closed, 0)
			asNobody(func() {
				_, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
				contains(t, err, filepath.Join(dir, closed)+": permission denied")
				want := "chmod -R u+rX " + filepath.Join(dir, closed)
				if err != nil && !strings.Contains(hint.Of(err), want) {
					t.Errorf("%s: hint %q, want %q", tree, hint.Of(err), want)
				}
			})
			chmod(closed, 0o755)
			chmod("lost+found", 0o755)
		}
	}
}

// TestFileInPlaceOfALine: the file of a clip counts, whatever is wrong with its line in a table.
func TestFileInPlaceOfALine(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "1/1/1_1.trans.tsv"), []byte("1_1_1\n"))
	write(t, filepath.Join(dir, "1/1/1_1_1.normalized.txt"), []byte("text"))
	items, err := layout.Items(layout.LibriTTS, dir, false, nil)
	if err != nil || len(items) != 1 || items[0].Problem != "" || items[0].Text != "text" {
		t.Errorf("%+v, %v", items, err)
	}
}

// TestCarriageReturnsBefore: the layout that the hint for an older run names reads what that run read.
func TestCarriageReturnsBefore(t *testing.T) {
	dir := folder(t, "a|one\rb|two", "c|three\rfour")
	for _, id := range []string{"a", "c"} {
		clip(t, dir, id, 8000, 1, ramp(1, 1000))
	}
	_, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000, Before: true})
	contains(t, err, "carriage returns end lines (in line 1) and are within texts (in line 2)")
	if got := hint.Of(err); got != "continue as before with --list-layout last-column" {
		t.Errorf("hint %q", got)
	}
	ix := open(t, Config{Dir: dir, SampleRate: 8000, Layout: layout.LastColumn})
	if len(ix.Rows) != 2 || ix.Rows[0].Text != "two" || ix.Rows[1].Text != "three four" {
		t.Errorf("%+v", ix.Rows)
	}
}

// TestObjectsThatEndInReturns: a question about such a list has the texts of its line.
func TestObjectsThatEndInReturns(t *testing.T) {
	dir := t.TempDir()
	line := `{"audio_filepath": "c%d.wav", "text": "%s", "normalized_text": "%s"}` + "\r"
	write(t, filepath.Join(dir, "train.jsonl"), fmt.Appendf(nil, line+line, 0, "one", "one", 1, "two", "two spoken"))
	_, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
	if _, ok := errors.AsType[*layout.Question](err); !ok {
		t.Fatal(err)
	}
	contains(t, err, `text "two spoken"`)
}

// TestStandardKeysHaveAName: a list whose objects have the standard keys, but none has all, is of a layout that can be
// asked for.
func TestStandardKeysHaveAName(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "train.jsonl"), []byte(`{"audio_filepath": "a.wav"}`+"\n"+`{"text": "one"}`+"\n"))
	d, err := layout.Recognise(source(dir, "train.jsonl", ""), nil)
	if err != nil || d.String() != "jsonl" || !d.AsBefore {
		t.Fatalf("%+v, %v", d, err)
	}
}
