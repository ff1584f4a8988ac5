package synthesize

import (
	"io"
	"os"
	"strings"
	"testing"

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
