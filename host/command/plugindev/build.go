package plugindev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
)

// unoptimized is what a build of a Go program needs so that a debugger finds the variables of the plugin's own
// packages, as a flag of GOFLAGS. To build all others anew takes a minute.
const unoptimized = "'-gcflags=./...=-N -l'"

// buildCommand returns the command that builds the plugin: make, or go build as its docs have it. It is nil for a
// script that has neither.
func buildCommand(dir string, entry catalog.Entry) []string {
	is := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	switch {
	case is("Makefile"), is("makefile"), is("GNUmakefile"):
		return []string{"make", "--silent"}
	case is("go.mod") && entry.Manifest != nil:
		if program := entry.Manifest.Executable[runtime.GOOS+"_"+runtime.GOARCH]; program != "" {
			return []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", program, "."}
		}
	}
	return nil
}

// build builds the plugin, and ends everything that the build has started when ctx ends. The error has the last lines
// of its output.
func build(ctx context.Context, dir string, command []string, debug bool) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if command[0] == "go" {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if debug {
		cmd.Env = append(cmd.Env, strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" "+unoptimized))
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the host, which ends the build
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s is not installed", command[0])
	case errors.Is(err, exec.ErrWaitDelay): // it was built, and something that it has left runs on
	case err != nil:
		return visible.WithLines(fmt.Errorf("%s: %w", strings.Join(command, " "), err), lastLines(output.String())...)
	}
	return nil
}

// shownLines is how many of the last lines of a build are shown.
const shownLines = 20

func lastLines(text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[max(0, len(lines)-shownLines):]
}
