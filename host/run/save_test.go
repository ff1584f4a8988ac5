package run

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
)

// TestSaveOnRequest requests a checkpoint in the middle of a run, which continues until it is interrupted.
func TestSaveOnRequest(t *testing.T) {
	save, stop := make(chan struct{}, 1), make(chan struct{})
	var asked, stopped sync.Once
	out := writer(func(p []byte) {
		if bytes.Contains(p, []byte("grad_norm")) {
			asked.Do(func() { save <- struct{}{} })
		}
	})
	var said string
	warnings := writer(func(p []byte) {
		if bytes.Contains(p, []byte("training continues")) {
			stopped.Do(func() { said = string(p); close(stop) })
		}
	})
	dir, err := trainPico(t, console.Console{Out: out, Err: warnings, Save: save, Stop: stop}, "--log-every", "1",
		"--checkpoint-every", "0", "--keep-last", "0")
	if exit.Code(err) != 130 {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, rundir.Checkpoints, "step-*"))
	if err != nil || len(found) == 0 || said != "saved "+found[0]+"; training continues\n" {
		t.Errorf("checkpoints %v, the run said %q: %v", found, said, err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	if err != nil || !bytes.Contains(log, []byte(`"reason":"asked"`)) {
		t.Errorf("%v: log.jsonl does not say that it was asked for", err)
	}
}

// TestReaderGone: a run whose outputs no one reads any more continues to its end, and its log has a warning.
func TestReaderGone(t *testing.T) {
	closed := brokenPipe{}
	dir, err := trainPico(t, console.Console{Out: closed, Err: closed}, "--max-steps", "3")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"output", "error"} {
		if n := bytes.Count(
			log, []byte("the standard "+name+" cannot be written to, the run continues without it: broken pipe"),
		); n != 1 {
			t.Errorf("log.jsonl says %d times that the standard %s has no reader", n, name)
		}
	}
}

// brokenPipe is an output whose reader has gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
