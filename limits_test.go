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
	fields      = 15
	methods     = 20
	runLines    = 800 // of package run, tests aside: it joins the parts of a run, which are packages of their own
)

// defence begins the sentence of a type's comment that says why it has more fields or methods than the limits.
const defence = "It is wide because "

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

// walk calls visit with every file of the repository that has this ending, and not with what was built, fetched or
// trained.
func walk(t *testing.T, ending string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() &&
			(len(path) > 1 && strings.HasPrefix(d.Name(), ".") || path == "bin" || path == "runs") {
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
	files := sources(t)
	for _, s := range files {
		lengths = append(lengths, s.lines)
		if s.lines > fileLines {
			t.Errorf("%s has %d lines, at most %d are readable", s.path, s.lines, fileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from, to := s.fset.Position(f.Pos()), s.fset.Position(f.End())
			if n := to.Line - from.Line + 1; n > funcLines {
				t.Errorf("%s: %s has %d lines, at most %d are readable", from, f.Name.Name, n, funcLines)
			}
		}
	}
	slices.Sort(lengths)
	if median := lengths[len(lengths)/2]; median > medianLines {
		t.Errorf("the median of %d Go files has %d lines, at most %d are wanted", len(lengths), median, medianLines)
	}
	for name, typ := range structs(files) {
		if strings.Contains(strings.Join(strings.Fields(typ.doc), " "), defence) {
			continue
		}
		if typ.fields > fields {
			t.Errorf("%s has %d fields, above %d its comment says %q", name, typ.fields, fields, defence+"...")
		}
		if typ.methods > methods {
			t.Errorf("%s has %d methods, above %d its comment says %q", name, typ.methods, methods, defence+"...")
		}
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
			"package run has %d lines, at most %d are wanted: loop, session, record and ending are packages beside it",
			lines, runLines)
	}
}

// structure is what counts of a struct type.
type structure struct {
	doc             string
	fields, methods int
}

// structs returns the struct types at the top level, by "folder.Name".
func structs(files []source) map[string]structure {
	types, receivers := map[string]structure{}, map[string]int{}
	for _, s := range files {
		prefix := filepath.Dir(s.path) + "."
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					receivers[prefix+receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					typ, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					if body, ok := typ.Type.(*ast.StructType); ok {
						types[prefix+typ.Name.Name] = structure{doc: d.Doc.Text() + typ.Doc.Text(), fields: count(body)}
					}
				}
			}
		}
	}
	for name, n := range receivers {
		if typ, ok := types[name]; ok {
			typ.methods = n
			types[name] = typ
		}
	}
	return types
}

// count returns the number of fields; an embedded one counts once.
func count(s *ast.StructType) int {
	n := 0
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestSizesAreCounted keeps the counting honest on a file that exceeds what it may.
func TestSizesAreCounted(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "folder/a.go", `package a

// T holds three. It is wide because it must.
type T[V any] struct {
	a, b int
	error
}

func (t *T[V]) one() {}
func (t T[V]) two()  {}
`, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	got := structs([]source{{"folder/a.go", 0, fset, file}})["folder.T"]
	if got.fields != 3 || got.methods != 2 || !strings.Contains(got.doc, defence) {
		t.Errorf("%+v", got)
	}
}

// commentLine is a line of nothing but a comment. Code and drawings in it follow a tab.
var commentLine = regexp.MustCompile(`^(\t*)(// .*)`)

// TestCommentsFit: lines of comments are at most as wide as those of the docs, with tabs of four columns.
func TestCommentsFit(t *testing.T) {
	for _, s := range sources(t) {
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			m := commentLine.FindStringSubmatch(line)
			if m != nil && 4*len(m[1])+utf8.RuneCountInString(m[2]) > docColumns {
				t.Errorf("%s:%d: the comment is wider than %d columns", s.path, i+1, docColumns)
			}
		}
	}
}
