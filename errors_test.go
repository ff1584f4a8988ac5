package xttshost_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lineless are the files with errors whose message has line breaks without a method Lines, and why.
var lineless = map[string]string{
	"host/base/visible/error.go": "the package knows its type withLines",
	"scripts/torture/soak.go":    "prints its errors itself",
}

// TestErrorsOfSeveralLinesHaveLines: package visible shows a line break in a message as an escape, unless the error has
// a method Lines() []string.
func TestErrorsOfSeveralLinesHaveLines(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if isTest(s.path) {
			continue
		}
		for _, name := range append(brokenErrors(s.file), brokenCalls(s.file)...) {
			if used[s.path] = true; lineless[s.path] == "" {
				const advice = "give its type Lines() []string, or use visible.WithLines"
				t.Errorf("%s: the message of %s has a line break: %s", s.path, name, advice)
			}
		}
	}
	for path := range lineless {
		if !used[path] {
			t.Errorf("%s has no such error any more: remove it from the list", path)
		}
	}
}

// ownCommand matches a command of the program that is written out. docs/commands.md has a heading for each.
func ownCommand(t *testing.T) *regexp.Regexp {
	words := []string{"help", "train"}
	for _, heading := range regexp.MustCompile(`(?m)^## xtts-host (\w+)`).FindAllStringSubmatch(
		read(t, "docs/commands.md"), -1) {
		words = append(words, heading[1])
	}
	return regexp.MustCompile(`xtts-host (--[a-z]|(` + strings.Join(words, "|") + `)\b)`)
}

// TestMessagesNameTheProgramAsCalled: a command in a message is made by hint.Command, with the word that the program
// was called by. The examples of the help, which are the same in docs/commands.md, get it when they are printed.
func TestMessagesNameTheProgramAsCalled(t *testing.T) {
	command := ownCommand(t)
	for _, s := range sources(t) {
		if isTest(s.path) || strings.HasPrefix(s.path, "scripts/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if field, ok := n.(*ast.KeyValueExpr); ok && fmt.Sprint(field.Key) == "Example" {
				return false
			}
			if d, ok := n.(*ast.ValueSpec); ok && strings.HasSuffix(d.Names[0].Name, "Examples") {
				return false
			}
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && command.MatchString(l.Value) {
				t.Errorf("%s: use hint.Command for the command in %s", s.path, l.Value)
			}
			return true
		})
	}
}

// brokenErrors returns the types whose method Error has a literal with a line break, and that have no method Lines in
// that file.
func brokenErrors(file *ast.File) (types []string) {
	broken, lines := map[string]bool{}, map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || len(f.Recv.List) != 1 {
			continue
		}
		name := receiver(f.Recv.List[0].Type)
		switch f.Name.Name {
		case "Lines":
			lines[name] = true
		case "Error":
			ast.Inspect(f, func(n ast.Node) bool {
				broken[name] = broken[name] || breaks(n)
				return true
			})
		}
	}
	for name, is := range broken {
		if is && !lines[name] {
			types = append(types, name)
		}
	}
	return types
}

// brokenCalls returns the calls that make an error from a literal with a line break.
func brokenCalls(file *ast.File) (calls []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := f.X.(*ast.Ident)
		if !ok || !slices.Contains([]string{"fmt.Errorf", "hint.Errorf", "errors.New"}, of.Name+"."+f.Sel.Name) {
			return true
		}
		if slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return breaks(e) }) {
			calls = append(calls, of.Name+"."+f.Sel.Name)
		}
		return true
	})
	return calls
}

// breaks reports whether an expression is a literal with a line break.
func breaks(n ast.Node) bool {
	l, ok := n.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return false
	}
	text, err := strconv.Unquote(l.Value)
	return err == nil && strings.Contains(text, "\n")
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
