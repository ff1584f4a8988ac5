package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestProgramChangesInMidRun: a process that ends is not restarted from a file that is gone or another one.
func TestProgramChangesInMidRun(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "prog")
			if err := os.Link(os.Args[0], path); err != nil {
				data, rerr := os.ReadFile(os.Args[0])
				if err := errors.Join(rerr, os.WriteFile(path, data, 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			r := newRig(t, "ok")
			r.Plugin.Dir, r.Plugin.Command = dir, []string{path, "fake-plugin", "ok"}
			p := r.open()
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			p.Kick(ProcessID{}, "a test")
			_, err := callSlot(t, p, 0)
			if !errors.Is(err, ErrChanged) || errors.Is(err, ErrCrashLoop) {
				t.Errorf("%v", err)
			}
			if s := p.Stats(); s.Restarts != 0 {
				t.Errorf("%d restarts", s.Restarts)
			}
		})
	}
}
