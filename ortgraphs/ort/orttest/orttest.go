// Package orttest loads ONNX Runtime for the tests of a package and shuts it down after them:
//
//	func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }
//
// The test binary fails if a test does not close a session, a tensor or run options.
package orttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Run initializes the library, runs the tests, shuts the library down and returns the exit status. If the library is
// missing, the tests fail with the command that fetches it; they are not skipped.
func Run(m *testing.M) int { return RunWith(m, Init) }

// RunWith is Run for tests that initialize the library in their own way.
func RunWith(m *testing.M, initialize func() error) int {
	if err := initialize(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := ort.Shutdown(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "a test left something open:", err)
		return 1
	}
	return code
}

// Init is for a TestMain that does more than Run. It finds the library as the program does, and also in the cache of
// the checkout that contains the working directory, because a test binary is elsewhere.
func Init() error {
	err := ort.Init(ort.Options{Library: Library()})
	if missing, ok := errors.AsType[*ort.LibraryError](err); ok {
		return fmt.Errorf("%w\nhint: %s", err, missing.Hint())
	}
	return err
}

// Library returns the library that the environment names, or that of the nearest checkout above the working directory
// that has it, or "".
func Library() string {
	if named := os.Getenv(ort.LibraryEnv); named != "" {
		return named
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		lib := filepath.Join(dir, ort.CachedLibrary)
		if exists(filepath.Join(dir, "go.mod")) && exists(lib) {
			return lib
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
