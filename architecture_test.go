package xttshost_test

import (
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the drawing of docs/architecture.md")

const (
	architecturePage = "docs/architecture.md"
	drawingBegin     = "<!-- shelves: make generate -->\n"
	drawingEnd       = "<!-- end of shelves -->\n"
)

// TestArchitectureDrawsShelves compares the drawing of the shelves with the folders of host.
func TestArchitectureDrawsShelves(t *testing.T) {
	page := read(t, architecturePage)
	before, rest, ok := strings.Cut(page, drawingBegin)
	drawing, after, ok2 := strings.Cut(rest, drawingEnd)
	if !ok || !ok2 {
		t.Fatalf("%s: the comments around the drawing of the shelves are missing", architecturePage)
	}
	want := drawShelves(t)
	if *update {
		if err := os.WriteFile(architecturePage, []byte(before+drawingBegin+want+drawingEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if drawing != want {
		t.Errorf("%s: the shelves have changed; make generate draws them:\n%s", architecturePage, want)
	}
}

// drawShelves draws the shelves from the highest to the lowest, each with its packages.
func drawShelves(t *testing.T) string {
	var b strings.Builder
	b.WriteString("```\n")
	for _, s := range slices.Backward(shelves) {
		entries, err := os.ReadDir(s.folder)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("  %-10s", path.Base(s.folder))
		for _, e := range entries {
			if !e.IsDir() || e.Name() == "testdata" {
				continue
			}
			if len(line)+1+len(e.Name()) > 120 { // the limit of pages is 120
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", 12)
			}
			line += " " + e.Name()
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}
