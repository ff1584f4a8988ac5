package xttshost_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opens are the functions that open, make, rename or remove files by a name, by the path of their package.
var opens = map[string][]string{
	"os": {
		"Open", "OpenFile", "Create", "CreateTemp", "ReadFile", "WriteFile", "Rename", "Remove", "RemoveAll", "Mkdir",
		"MkdirAll", "MkdirTemp", "OpenRoot", "OpenInRoot", "Link", "Symlink", "Truncate", "Chmod", "Chtimes", "ReadDir",
		"CopyFS",
	},
	"io/ioutil": {"ReadFile", "WriteFile", "TempFile", "TempDir", "ReadDir"},
	"syscall": {
		"Open", "Openat", "Creat", "Rename", "Unlink", "Unlinkat", "Mkdir", "Mkdirat", "Rmdir", "Flock", "Link",
		"Symlink", "Truncate",
	},
	"golang.org/x/sys/unix": {
		"Open", "Openat", "Openat2", "Creat", "Rename", "Renameat", "Renameat2", "Unlink", "Unlinkat", "Mkdir",
		"Mkdirat", "Rmdir", "Flock", "Link", "Symlink", "Truncate",
	},
}

// openers are the files that may open files themselves, and why.
var openers = map[string]string{
	"host/settings/config/cache.go":     "lists a folder that is to be a cache",
	"host/settings/limits/threads.go":   "/proc and /sys",
	"host/command/validate/cost.go":     "a file for its own use, without a name",
	"shared/audio/source.go":            "recordings that a plugin names; the host gives its own files",
	"shared/ring/ring.go":               "/proc",
	"host/command/bench":                "a bench makes its own folders of clips and results, and is no run",
	"host/command/profile/profile.go":   "a profile makes its own folders of clips and results, and is no run",
	"host/command/inspect/lint.go":      "lint keeps optimized graphs in a temporary folder of its own",
	"host/stages/supervise/debugger.go": "/proc",
	"host/stages/supervise/memory.go":   "/proc",
	"host/stages/supervise/orphans.go":  "/proc",
	"host/ranks/feed/machine.go":        "/proc",
	"host/observe/debug/memory.go":      "/proc",
	"host/observe/report/usage.go":      "/proc",
	"host/stages/sandbox":               "/proc, cgroups and files of the system",
	"host/stages/catalog":               "the folder of a plugin, below an os.Root",
	"ortgraphs/bundle.go":               "an os.Root, which package files opens the files in",
	"ortgraphs/builtin.go":              "an os.Root of the embedded bundles, unpacked by this program",
	"host/base/files":                   "the one place",
}

// TestFilesAreOpenedInOnePlace: what a run reads and writes goes through package files, which follows no link in a run
// folder.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	used := map[string]bool{}
	for _, folder := range []string{"host", "ortgraphs", "shared", "plugins", "gpu", "cmd/internal"} {
		err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || isTest(file) {
				return err
			}
			for _, call := range openCalls(t, file) {
				by := file
				for by != "." && openers[by] == "" {
					by = filepath.Dir(by)
				}
				if used[by] = true; by == "." {
					t.Errorf("%s calls %s: use package host/base/files", file, call)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for by := range openers {
		if !used[by] {
			t.Errorf("%s opens no files itself any more: remove it from the list", by)
		}
	}
}

// isTest reports whether a file is that of tests, or of a package or a program for tests.
func isTest(file string) bool {
	return strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") ||
		strings.HasSuffix(filepath.Base(filepath.Dir(file)), "test") &&
			!strings.HasPrefix(file, "host/command/plugintest/") ||
		strings.HasPrefix(file, "ortgraphs/variant/")
}

// openCalls returns what a file calls of opens.
func openCalls(t *testing.T, file string) (calls []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{} // of the packages, in this file
	for _, imp := range tree.Imports {
		path := strings.Trim(imp.Path.Value, `"`)
		if names[filepath.Base(path)] = path; imp.Name != nil {
			names[imp.Name.Name] = path
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := s.X.(*ast.Ident); ok && slices.Contains(opens[names[of.Name]], s.Sel.Name) {
			calls = append(calls, of.Name+"."+s.Sel.Name)
		}
		return true
	})
	return calls
}
