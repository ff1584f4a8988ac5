package xttshost_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The size of what a reader meets at once. Generated files are aside.
const (
	fileLines   = 450
	medianLines = 120
	funcLines   = 70
	runLines    = 800 // of package run, tests aside: it joins the parts of a run, which are packages of their own
)

// source is a parsed Go file of this repository.
type source struct {
	path  string
	lines int
	fset  *token.FileSet
	file  *ast.File
}

// sources parses every Go file that a person wrote.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, ".go", func(path string) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(file) {
			all = append(all, source{path, fset.File(file.Pos()).LineCount(), fset, file})
		}
	})
	return all
}

// linesOf is the number of lines of a node.
func (s *source) linesOf(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// tables is the number of lines of a test's tables of cases, which are data: they are read as one reads a list.
func (s *source) tables(n ast.Node) (lines int) {
	if !strings.HasSuffix(s.path, "_test.go") {
		return 0
	}
	ast.Inspect(n, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if ok {
			lines += s.linesOf(table) - 1
		}
		return !ok
	})
	return lines
}

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// walk calls visit with every file of the repository that has this ending, and not with what .gitignore names: what was
// built, fetched, trained or written by the commands of a guide.
func walk(t *testing.T, ending string, visit func(path string)) {
	t.Helper()
	ignored := strings.Fields(read(t, ".gitignore"))
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() &&
			(len(path) > 1 && strings.HasPrefix(d.Name(), ".") || slices.Contains(ignored, "/"+path+"/")) {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ending) && d.Type().IsRegular() {
			visit(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSizes(t *testing.T) {
	var lengths []int
	for _, s := range sources(t) {
		lengths = append(lengths, s.lines)
		if n := s.lines - s.tables(s.file); n > fileLines {
			t.Errorf("%s has %d lines, at most %d are readable", s.path, n, fileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from := s.fset.Position(f.Pos())
			if n := s.linesOf(f) - s.tables(f); n > funcLines {
				t.Errorf("%s: %s has %d lines, at most %d are readable", from, f.Name.Name, n, funcLines)
			}
		}
	}
	slices.Sort(lengths)
	if median := lengths[len(lengths)/2]; median > medianLines {
		t.Errorf("the median of %d Go files has %d lines, at most %d are wanted", len(lengths), median, medianLines)
	}
}

// TestRunIsSmall: what is not the course of a run belongs in a package of its own.
func TestRunIsSmall(t *testing.T) {
	lines := 0
	for _, s := range sources(t) {
		if filepath.Dir(s.path) == "host/run" && !strings.HasSuffix(s.path, "_test.go") {
			lines += s.lines
		}
	}
	if lines == 0 || lines > runLines {
		t.Errorf(
			"package run has %d lines, at most %d are wanted: loop, session, summary and ending are packages beside it",
			lines, runLines)
	}
}

// commentLine is a line of nothing but a comment. Code and drawings in it follow a tab.
var commentLine = regexp.MustCompile(`^(\t*)(// .*)`)

// TestCommentsFit: lines of comments are at most as wide as those of the docs, with tabs of four columns.
func TestCommentsFit(t *testing.T) {
	for _, s := range sources(t) {
		text := read(t, s.path)
		for i, line := range strings.Split(text, "\n") {
			m := commentLine.FindStringSubmatch(line)
			if m != nil && 4*len(m[1])+utf8.RuneCountInString(m[2]) > docColumns {
				t.Errorf("%s:%d: the comment is wider than %d columns", s.path, i+1, docColumns)
			}
		}
	}
}

// TestCodeFits: lines of code are at most as wide as those of the docs, with tabs of four columns. Raw strings are
// aside, which cannot be broken, and C code in comments.
func TestCodeFits(t *testing.T) {
	for _, s := range sources(t) {
		text := read(t, s.path)
		for _, line := range s.wide(text) {
			t.Errorf("%s:%d: the line is wider than %d columns", s.path, line, docColumns)
		}
	}
}

// wide returns the numbers of the lines of code that are too wide.
func (s *source) wide(text string) (lines []int) {
	free := map[int]bool{}
	exempt := func(n ast.Node) {
		for line := s.fset.Position(n.Pos()).Line; line <= s.fset.Position(n.End()).Line; line++ {
			free[line] = true
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, "`") {
			exempt(lit)
		}
		return true
	})
	for _, c := range s.file.Comments {
		if strings.HasPrefix(c.List[0].Text, "/*") {
			exempt(c)
		}
	}
	for i, line := range strings.Split(text, "\n") {
		code := strings.TrimLeft(line, "\t")
		width := 4*(len(line)-len(code)) + utf8.RuneCountInString(code)
		if width > docColumns && !free[i+1] && !strings.HasPrefix(code, "//") { // TestCommentsFit has those
			lines = append(lines, i+1)
		}
	}
	return lines
}

// TestWideLinesAreFound: a wide line is found wherever it is, and a raw string is not one.
func TestWideLinesAreFound(t *testing.T) {
	long := strings.Repeat("x", docColumns)
	const code = "package a\n\nvar a = \"LONG\"\n\nvar b = `LONG`\n\n// LONG\nvar c = 1 // LONG\n"
	text := strings.ReplaceAll(code, "LONG", long)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s := source{"a.go", 0, fset, file}
	if got := s.wide(text); !slices.Equal(got, []int{3, 8}) {
		t.Errorf("lines %v, want 3 and 8", got)
	}
}

// TestKernelsFit: sources for GPUs are as wide as code in Go.
func TestKernelsFit(t *testing.T) {
	for _, end := range []string{".cu", ".cuh"} {
		walk(t, end, func(path string) {
			for i, line := range strings.Split(read(t, path), "\n") {
				if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > docColumns {
					t.Errorf("%s:%d: the line has %d columns, at most %d are wanted", path, i+1, n, docColumns)
				}
			}
		})
	}
}
