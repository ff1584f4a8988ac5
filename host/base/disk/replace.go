package disk

import "github.com/xtts-host/xtts-host/host/base/files"

// Replace replaces a file durably, completely or not at all. It explains a full disk.
func Replace(path string, data []byte) error {
	return Explain(files.At(path).Replace(data), path, int64(len(data)))
}
