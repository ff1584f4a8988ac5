package page

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/page/pagetest"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

// TestHostileRunsDoNothing: whatever a run folder has, the page has only its own elements and attributes, loads
// nothing, and shows foreign text as text.
func TestHostileRunsDoNothing(t *testing.T) {
	for _, number := range []float64{1e308, -1e308, 0, 1e-308, -1, 5e5, 1e14} {
		dir := pagetest.HostileRun(t, number)
		run, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for link, most := range map[string]int64{".": MostMedia, "javascript:alert(1)/../" + filepath.Base(dir): 0} {
			text, err := Of(run, link, most, time.Unix(0, 0))
			if err != nil {
				t.Fatalf("%g: %v", number, err)
			}
			shown := pagetest.Check(t, string(text))
			for _, want := range []string{
				`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `\u202egnp.exe\u2066`, `nul\x00bell\x07esc\x1b[31m`,
				`{{.Run}} {{"x"}}`, "سلام دنیا",
			} {
				if !strings.Contains(shown, want) {
					t.Errorf("%g: the page does not show %s", number, want)
				}
			}
			if len(text) > 4<<20 {
				t.Errorf("%g: the page has %d bytes", number, len(text))
			}
		}
	}
}

// TestForeignTextsHaveTheirDirection: each text of a stranger has an element that gives it the direction of its first
// letter, which pagetest.Check demands of letters that are written from right to left.
func TestForeignTextsHaveTheirDirection(t *testing.T) {
	var texts []string
	for i := range 16 {
		texts = append(texts, fmt.Sprintf("سلام (%d) دنیا!", i))
	}
	for _, number := range []float64{-1, 160} { // a run without a report of its end, and one that has it
		run, err := record.Open(pagetest.RunOf(t, number, texts))
		if err != nil {
			t.Fatal(err)
		}
		text, err := Of(run, ".", MostMedia, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		shown := pagetest.Check(t, string(text))
		if n := strings.Count(shown, "سلام"); n < 100 || number > 0 && !strings.Contains(shown, "by سلام") {
			t.Errorf("the page shows the texts %d times", n)
		}
	}
}
