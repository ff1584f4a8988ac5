package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"xtts-host.1":               `\fB--train-data\fP`,
		"xtts-host-bench.1":         `\fB--batch-sizes\fP`,
		"xtts-host-graph-inspect.1": `\fB--json\fP`,
	} {
		page, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), want) {
			t.Errorf("%s does not have %s:\n%s", file, want, page)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "xtts-host-probe.1")); err == nil {
		t.Error("there is a page of an internal command")
	}
}
