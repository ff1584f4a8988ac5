package record

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// endless is a line without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestWhatEndsLines: what was left out is said, whatever ends the file.
func TestWhatEndsLines(t *testing.T) {
	const left = "x.jsonl:2 was left out: bad"
	damaged := iotest.ErrReader(syscall.EIO)
	long := strings.NewReader(strings.Repeat("x", 2*MaxLine))
	for _, c := range []struct {
		text string
		rest io.Reader
		want string
	}{
		{"good\n", strings.NewReader(""), ""},
		{"good\nbad\n", strings.NewReader("a part"), left},
		{"good\n", damaged, "x.jsonl: input/output error"},
		{"good\nbad\n", damaged, left + "; x.jsonl: input/output error"},
		{"good\nbad\n", io.MultiReader(long, damaged), left + "; x.jsonl: input/output error"},
		{"good\n", endless{}, "x.jsonl:2 has more than 64 MiB, and nothing after it was read"},
		{"good\nbad\n", endless{}, left + "; x.jsonl:3 has more than 64 MiB, and nothing after it was read"},
	} {
		taken := 0
		got := linesOf(io.MultiReader(strings.NewReader(c.text), c.rest), files.At("x.jsonl"), func(line []byte) error {
			if string(line) == "bad\n" {
				return errors.New("bad")
			}
			taken++
			return nil
		})
		if got != c.want || taken != 1 {
			t.Errorf("%q: %q of %d lines, want %q", c.text, got, taken, c.want)
		}
	}
}
