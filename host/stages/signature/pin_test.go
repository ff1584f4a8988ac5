package signature

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestPinAtTheSameTime: no installation loses the key of another one, and none writes a name twice.
func TestPinAtTheSameTime(t *testing.T) {
	file, key := filepath.Join(t.TempDir(), "xtts-host", "plugin-keys"), secret(t).Public()
	var wg sync.WaitGroup
	for i := range 8 {
		k, err := loadKeys(file) // before the others write
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := errors.Join(k.Pin(fmt.Sprint("echo", i), key, nothing), k.Pin("all", key, nothing)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	k, err := loadKeys(file)
	if err != nil || len(k.of) != 9 {
		t.Errorf("%d keys, %v", len(k.of), err)
	}
}

// TestPinFails: an installation that fails leaves the file as it was, and with another key none is begun.
func TestPinFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plugin-keys")
	mine, other := secret(t).Public(), secret(t).Public()
	fails := errors.New("no room")
	k, err := loadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Pin("echo", mine, func() error { return fails }); !errors.Is(err, fails) {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is left")
	}
	stale, err := loadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Pin("rooms", mine, nothing); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Pin("echo", mine, func() error { return fails }); !errors.Is(err, fails) {
		t.Error(err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s", err, after)
	}
	begun := false
	begin := func() error { begun = true; return nil }
	if err := stale.Pin("rooms", other, begin); err == nil || !strings.Contains(err.Error(), "signed by another one") {
		t.Error(err)
	}
	if err := new(Keys).Pin("echo", mine, begin); err == nil || begun {
		t.Errorf("without a folder for keys: %v, begun: %v", err, begun)
	}
}
