package synthesize

import (
	"bufio"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestNoReader: a stream whose reader has ended is no fault of the text or of the bundle.
func TestNoReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s, err := stream(w, 8000)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	err = broken(s.write(make([]float32, 10)))
	if err == nil || !strings.HasPrefix(hint.Of(err), "the program that reads the sound has ended") {
		t.Errorf("%v; hint: %s", err, hint.Of(err))
	}
	if s, err := stream(io.Discard, 8000); err != nil || s.write(make([]float32, 10)) != nil {
		t.Error(err)
	}
}

// TestFullDisk: the error of a full disk names what the sound needs.
func TestFullDisk(t *testing.T) {
	s := &sound{out: bufio.NewWriterSize(full{}, 16), file: new(files.Draft), path: "x.wav", rate: 8000}
	err := s.write(make([]float32, 1000))
	if err == nil || !strings.Contains(err.Error(), "needs 2000 bytes") || hint.Of(err) == "" {
		t.Errorf("%v; hint: %s", err, hint.Of(err))
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
