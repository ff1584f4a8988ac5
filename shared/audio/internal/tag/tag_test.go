package tag

import (
	"io"
	"strings"
	"testing"
)

// TestLyricsOfTwoVersions: the end of a Lyrics3 tag of version 1 counts, and not that of version 2 in a short recording
// after it.
func TestLyricsOfTwoVersions(t *testing.T) {
	w := &Reader{File: strings.NewReader("LYRICSBEGINLYRICSEND and frames LYRICS200"), Size: 41}
	if end, err := w.afterLyrics(0); end != 20 || err != nil {
		t.Errorf("the tag ends at byte %d, want 20; %v", end, err)
	}
}

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	bytes int
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	c.bytes += n
	return n, err
}

// TestManyTags: the work for a chain of tags grows with the file and not with the number of tags.
func TestManyTags(t *testing.T) {
	content := strings.Repeat("LYRICSBEGIN"+"LYRICSEND", 1<<16) + "LYRICSBEGIN" + strings.Repeat(" ", 1<<20) +
		"LYRICS200"
	file := &counted{ReaderAt: strings.NewReader(content)}
	w := &Reader{File: file, Size: int64(len(content))}
	tags, at := 0, int64(0)
	for at < w.Size {
		end, ok, err := w.Trailer(at)
		if err != nil || !ok || end <= at {
			t.Fatalf("at byte %d: %d, %v, %v", at, end, ok, err)
		}
		at, tags = end, tags+1
	}
	if tags != 1<<16+1 {
		t.Errorf("%d tags", tags)
	}
	if file.bytes > 2*len(content) {
		t.Errorf("%d bytes are read of a file of %d", file.bytes, len(content))
	}
}
