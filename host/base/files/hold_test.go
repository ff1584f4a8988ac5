package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// holdWithoutLocks is Hold on a file system without locks.
func holdWithoutLocks(t *testing.T, p Path) *Held {
	t.Helper()
	f, err := p.Append()
	if err != nil {
		t.Fatal(err)
	}
	at := p.ownerFile()
	claim, err := at.claim()
	if err != nil {
		t.Fatal(err)
	}
	return &Held{File: f, owner: &at, claim: claim}
}

// TestHeldAnew: a hold that ends after its folder was removed and held anew leaves the new hold's file.
func TestHeldAnew(t *testing.T) {
	for _, removed := range []string{"log.jsonl", "log.jsonl.owner", "."} {
		run := In(t.TempDir()).Join("run")
		log := run.Join("log.jsonl")
		if err := run.MkdirAll(); err != nil {
			t.Fatal(err)
		}
		old := holdWithoutLocks(t, log)
		if err := run.Join(removed).RemoveAll(); err != nil {
			t.Fatal(err)
		}
		if err := run.MkdirAll(); err != nil {
			t.Fatal(err)
		}
		anew := holdWithoutLocks(t, log)
		if err := old.Close(); err != nil {
			t.Error(err)
		}
		if _, err := log.ownerFile().Lstat(); err != nil {
			t.Errorf("%s: %v", removed, err)
		}
		if err := anew.Close(); err != nil {
			t.Error(err)
		}
		if got := names(t, run.String()); strings.Contains(got, "owner") {
			t.Errorf("%s: left %s", removed, got)
		}
	}
}

// TestOwnerOfEarlierVersions: a file without the field of the hold is that of its process.
func TestOwnerOfEarlierVersions(t *testing.T) {
	p := In(t.TempDir()).Join("log.jsonl").ownerFile()
	if err := os.WriteFile(p.String(), thisProcess().format(), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := p.held(); err != nil {
		t.Error(err)
	}
	other := thisProcess()
	other.PID, other.Started, other.Hold = 1, startOf(1), "x"
	if err := os.WriteFile(p.String(), other.format(), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := p.held(); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
}

// TestOwnerMovedAway: what a kill leaves of a claim is a file that Sweep removes.
func TestOwnerMovedAway(t *testing.T) {
	p := In(t.TempDir()).Join("log.jsonl").ownerFile()
	if _, err := p.claim(); err != nil {
		t.Fatal(err)
	}
	away := p.away()
	if err := p.Rename(away); err != nil {
		t.Fatal(err)
	}
	if err := p.Parent().Join("other").Replace(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := away.Lstat(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", away, err)
	}
}

// TestLockOfWhatWasReplaced: the lock of a file that is no longer at its place is none.
func TestLockOfWhatWasReplaced(t *testing.T) {
	p := In(t.TempDir()).Join("file")
	if err := p.Replace(nil); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(p.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Replace(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.lockEntry(f); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	lock, err := p.LockEntry()
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}
