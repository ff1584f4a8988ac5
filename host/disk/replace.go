package disk

import (
	"errors"

	"github.com/xtts-host/xtts-host/shared/replace"
)

// Replace replaces a file durably, completely or not at all. It explains a full disk.
func Replace(path string, data []byte) error {
	f, err := replace.Create(path)
	if err != nil {
		return Explain(err, path, int64(len(data)))
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return Explain(errors.Join(err, f.Discard()), path, int64(len(data)))
	}
	return f.Commit()
}
