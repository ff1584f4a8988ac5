package fuse_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
)

// TestDocumentedExamples: the lines of code in docs/compiler.md are lines that the tests compile.
func TestDocumentedExamples(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(data), "\t", "")
	}
	compiled := strings.Split(read("extend_test.go")+read("operators_test.go"), "\n")
	_, page, _ := strings.Cut(read("../../docs/compiler.md"), "## Adding to the compiler")
	blocks := strings.Split(page, "```go\n")[1:]
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		for line := range strings.Lines(code) {
			line = strings.TrimSpace(line)
			if !slices.Contains(compiled, line) && !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "}") {
				t.Errorf("no test has the line %s", line)
			}
		}
	}
	if len(blocks) != 3 {
		t.Errorf("%d examples", len(blocks))
	}
}

// TestExtended: with the rewrite and the kind of region of docs/compiler.md, a graph computes the same.
func TestExtended(t *testing.T) {
	b := newForm()
	square := b.add("Reshape", b.add("Slice", "x", b.numbers(0), b.numbers(3), b.numbers(2)), b.numbers(6, 3))
	square = b.add("Slice", square, b.numbers(0), b.numbers(3), b.numbers(0))
	twice := b.add("Neg", b.add("Neg", b.add("Exp", square)))
	model := b.outputs(b.add("Tanh", b.add("MatMul", twice, twice)))
	r, g := lowered(t, model, nil)
	regions, err := fuse.VerifiedPartition(g, fuse.Cancel, fuse.SetSquaresApart)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, model, r, g, regions, batch(r, nil), 1e-6, 0)
	squares := 0
	for _, r := range regions {
		if strings.Contains(r.Ops(), "Neg") {
			t.Errorf("a negation is left: %s", r.Ops())
		}
		if s, ok := r.Work.(*fuse.Square); ok {
			squares += s.Rows
			if _, err := cudac.Generate(r, cudac.Target{}); err == nil || err.Error() != "no rule knows *fuse.Square" {
				t.Error(err)
			}
		}
	}
	if squares != 3 {
		t.Errorf("squares of %d rows", squares)
	}
}
