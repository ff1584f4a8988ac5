package frozen

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// memory is outside of Go's heap, as the ring is.
func memory(t *testing.T, size int) []byte {
	t.Helper()
	b, err := ort.NewBuffer(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b.Bytes()
}

func view(b []byte) []float32 { return ort.View[float32](b) }

func codes(b []byte) []int32 { return ort.View[int32](b) }
