package console

import (
	"strings"
	"syscall"
	"testing"
)

// TestPatienceWarns: a command that waits for a disk says so in one line that is a warning.
func TestPatienceWarns(t *testing.T) {
	var out strings.Builder
	if err := (Console{Err: &out}).Patience(0.1).Retry(func() error { return syscall.EIO }); err != syscall.EIO {
		t.Error(err)
	}
	if want := "warning: the disk fails: input/output error; tried again for up to 0.1 s " +
		"(--disk-wait)\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
