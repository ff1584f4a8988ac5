package tensorboard

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// A folder that cannot be written ends the board with an error that names it.
func TestCannotWrite(t *testing.T) {
	run := t.TempDir()
	if err := os.WriteFile(filepath.Join(run, rundir.BoardFolder), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Open(Config{Dir: run})
	if err == nil {
		err = b.Take([]event.Event{&event.Start{}, step(1)})
	}
	if err == nil || !strings.Contains(err.Error(), filepath.Join(run, rundir.BoardFolder)) {
		t.Errorf("error %v", err)
	}
}

// A full disk ends the board with one warning, and the run goes on.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, Config{Dir: t.TempDir()})
	b.file = files.From(full)
	var warnings []string
	bus := event.NewBus()
	bus.Offer("tensorboard", b, func(text string) { warnings = append(warnings, text) })
	for n := int64(1); n <= 3; n++ {
		if err := bus.Publish(step(n)); err != nil {
			t.Errorf("the run ends: %v", err)
		}
		if err := bus.Sync(); err != nil {
			t.Errorf("a checkpoint is not saved: %v", err)
		}
	}
	if err := bus.Close(); err != nil {
		t.Error(err)
	}
	if len(warnings) == 0 || !strings.HasPrefix(warnings[0], "tensorboard: ") ||
		!strings.Contains(warnings[0], "no space left on device") || !strings.Contains(warnings[0], "no more events") {
		t.Errorf("warnings %q", warnings)
	}
}

// A file size limit makes a write of several records stop within one, as a disk that fills up does.
func TestFailedWriteLeavesWholeRecords(t *testing.T) {
	run := t.TempDir()
	b := open(t, Config{Dir: run})
	take(t, b, &event.Start{}, step(1))
	path := filepath.Join(run, rundir.BoardFolder, names(t, run)[0])
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ) // it would end the process
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{
		Cur: uint64(len(before)) + 20, Max: limit.Max,
	}); err != nil {
		t.Fatal(err)
	}
	err = b.Take([]event.Event{step(2), step(3)})
	if back := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); back != nil {
		t.Fatal(back)
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Errorf("error %v, want EFBIG", err)
	}
	if after, err := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("after the failure the file has %d bytes, before %d; %v", len(after), len(before), err)
	}
}
