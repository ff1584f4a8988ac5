package dataset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestLinksOfBooks: M-AILABS' folders may be links. Those that lead back do not loop, and one that leads nowhere is
// named.
func TestLinksOfBooks(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	reader := filepath.Join(dir, "de_DE", "by_book", "female", "eva")
	for book, parent := range map[string]string{"one": reader, "two": far} {
		list := ""
		for i := range 3 {
			list += fmt.Sprintf("%s_%d|%s|%s\n", book, i, sentence(i), sentence(i))
			write(t, filepath.Join(parent, book, "wavs", fmt.Sprintf("%s_%d.wav", book, i)),
				wavFile(8000, 1, ramp(1, 8000)))
		}
		write(t, filepath.Join(parent, book, "metadata.csv"), []byte(list))
	}
	link := func(to, at string) {
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(far, "two"), filepath.Join(reader, "two"))
	link(dir, filepath.Join(reader, "one", "back"))
	link("..", filepath.Join(far, "two", "up"))
	link("self", filepath.Join(reader, "self"))
	ix, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
	if err != nil {
		t.Fatal(err)
	}
	if len(ix.Rows) != 6 || len(ix.Rejected) > 0 {
		t.Errorf("%d clips of two books, %+v", len(ix.Rows), ix.Rejected)
	}
	gone := filepath.Join(reader, "three")
	link(filepath.Join(far, "three"), gone)
	_, err = Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
	if err == nil || !strings.Contains(err.Error(), gone+": a link that leads nowhere") ||
		!strings.Contains(hint.Of(err), "rm "+gone) {
		t.Errorf("%v; hint %s", err, hint.Of(err))
	}
}
