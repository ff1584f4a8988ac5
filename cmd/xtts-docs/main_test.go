package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteSaysWhatItMade: the pages, and a command that shows the first.
func TestWriteSaysWhatItMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my man")
	var out strings.Builder
	if err := write(&out, dir); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "xtts-host.1")
	_, err := os.Stat(page)
	if err != nil || !strings.HasSuffix(out.String(), " manual pages to "+dir+": man -l '"+page+"'\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}
