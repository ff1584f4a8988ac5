package library

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	path, err := Find("libm.so.6") // every C library of Linux has it
	if err != nil || filepath.Base(path) != "libm.so.6" || !filepath.IsAbs(path) {
		t.Errorf("found %q, %v", path, err)
	}
	if _, err := Find("libnowhere.so.1"); err == nil || !strings.Contains(err.Error(), "libnowhere.so.1") {
		t.Errorf("error %v", err)
	}
}
