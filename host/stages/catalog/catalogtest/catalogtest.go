// Package catalogtest builds plugins for tests.
package catalogtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// Program is the file name of a plugin's program for this machine.
func Program(name string) string { return name + "_" + runtime.GOOS + "_" + runtime.GOARCH }

// BuildFirstParty builds the plugins features and augment of the source folder plugins into folders below dir.
func BuildFirstParty(dir, plugins string) error {
	for _, name := range []string{"features", "augment"} {
		if err := Build(filepath.Join(dir, name, Program(name)), filepath.Join(plugins, name)); err != nil {
			return err
		}
	}
	return nil
}

// Build compiles the plugin in the folder source into the file program, and copies its plugin.json into the folder of
// that file, which it creates. Only the plugins that compute on a GPU, too, need cgo. The flags are those of
// scripts/build.sh, so that plugins are compiled once for the tests of all packages and for the build. Plugin
// processes are not built with -race; the plugins' own tests are.
func Build(program, source string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	description, err := os.ReadFile(filepath.Join(source, "plugin.json"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(program), "plugin.json"), description, 0o666); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", program,
		".")
	build.Dir = source
	build.Env = os.Environ()
	// these compute on a GPU, too
	if !slices.Contains([]string{"features", "augment", "inference", "lowpass"}, filepath.Base(source)) {
		build.Env = append(build.Env, "CGO_ENABLED=0")
	}
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%v in %s: %w\n%s", build.Args, source, err, out)
	}
	return nil
}
