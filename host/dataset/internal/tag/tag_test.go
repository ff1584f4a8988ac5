package tag

import (
	"strings"
	"testing"
)

// TestLyricsOfTwoVersions: the end of a Lyrics3 tag of version 1 counts, and not that of version 2 in a short recording after it.
func TestLyricsOfTwoVersions(t *testing.T) {
	w := &Reader{File: strings.NewReader("LYRICSBEGINLYRICSEND and frames LYRICS200"), Size: 41}
	if end, err := w.afterLyrics(0); end != 20 || err != nil {
		t.Errorf("the tag ends at byte %d, want 20; %v", end, err)
	}
}
