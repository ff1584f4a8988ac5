package xttshost_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of docs/architecture.md")

const (
	architecturePage = "docs/architecture.md"
	tableBegin       = "<!-- packages: make generate -->\n"
	tableEnd         = "<!-- end of packages -->\n"
)

// row is a line of the table of packages.
type row struct {
	folder, purpose string
	lines           int
}

func (r row) String() string {
	return fmt.Sprintf("| `%s` | %s | %d |\n", r.folder, r.purpose, r.lines)
}

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\| (\\d+) \\|$")

// TestArchitectureListsPackages compares the table of packages with the code. Sizes may be off by a tenth, so that not
// every change has to touch the page.
func TestArchitectureListsPackages(t *testing.T) {
	page := read(t, architecturePage)
	before, rest, ok := strings.Cut(page, tableBegin)
	table, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s: the comments around the table of packages are missing", architecturePage)
	}
	want := packageRows(t)
	if *update {
		var b bytes.Buffer
		b.WriteString(before)
		b.WriteString(tableBegin + "| package | subject | lines |\n|---|---|---|\n")
		for _, r := range want {
			b.WriteString(r.String())
		}
		b.WriteString(tableEnd)
		b.WriteString(after)
		if err := os.WriteFile(architecturePage, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got := map[string]row{}
	for _, m := range tableRow.FindAllStringSubmatch(table, -1) {
		lines, _ := strconv.Atoi(m[3])
		got[m[1]] = row{m[1], m[2], lines}
	}
	for _, w := range want {
		g, listed := got[w.folder]
		delete(got, w.folder)
		switch {
		case !listed:
			t.Errorf("%s does not list %s", architecturePage, w.folder)
		case g.purpose != w.purpose:
			t.Errorf("%s: %s has changed:\n%s%s", architecturePage, w.folder, g, w)
		case !near(g.lines, w.lines):
			t.Errorf("%s: the size of %s is no longer right:\n%s%s", architecturePage, w.folder, g, w)
		}
	}
	for folder := range got {
		t.Errorf("%s lists %s, which does not exist", architecturePage, folder)
	}
	if t.Failed() {
		t.Log("make generate writes the table")
	}
}

// near reports whether a stated size is within a tenth of the true one, or within 20 lines.
func near(stated, size int) bool {
	return math.Abs(float64(stated-size)) <= max(20, 0.1*float64(size))
}

// packageRows returns the table as it should be: every package.
func packageRows(t *testing.T) []row {
	var rows []row
	for _, p := range list(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		r := row{folder: folder, purpose: strings.ReplaceAll(firstSentence(p.Doc), "|", "\\|")}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			if strings.HasSuffix(name, ".pb.go") {
				continue
			}
			text := read(t, path.Join(folder, name))
			r.lines += strings.Count(text, "\n")
		}
		if r.lines == 0 { // generated
			continue
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.folder, b.folder) })
	return rows
}

// firstSentence returns the first sentence of a package's doc comment without the words that all of them begin with.
func firstSentence(doc string) string {
	sentence, _, _ := strings.Cut(strings.Join(strings.Fields(doc), " "), ". ")
	words := strings.SplitN(strings.TrimSuffix(sentence, "."), " ", 3)
	if len(words) == 3 && (words[0] == "Package" || words[0] == "Command") {
		return strings.TrimSuffix(words[2], ":")
	}
	return sentence
}
