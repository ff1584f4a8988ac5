package archive

import (
	"compress/flate"
	"errors"
	"io"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// counter counts what is read, and refuses to read more than a limit, if there is one.
type counter struct {
	from     io.Reader
	n, limit int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if c.n += int64(n); c.limit > 0 && c.n > c.limit {
		return 0, refuse("it unpacks to more than %s, the limit of its size", units.Size(c.limit))
	}
	return n, err
}

// isFlate reports whether the compressed data are not what gzip writes.
func isFlate(err error) bool {
	_, ok := errors.AsType[flate.CorruptInputError](err)
	return ok
}
