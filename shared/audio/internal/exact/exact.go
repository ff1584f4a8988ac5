// Package exact reads parts of files in full.
package exact

import (
	"fmt"
	"io"
)

// ReadAt fills b with the bytes from offset at.
func ReadAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil // ReadAt may return io.EOF with the last bytes
	}
	return fmt.Errorf("reading %d bytes at %d: got %d: %w", len(b), at, n, err)
}
