package disk

import "github.com/xtts-host/xtts-host/host/base/files"

// Replace replaces a file durably, completely or not at all. It waits for the disk as the process does, and explains a
// full one, also in the warning that it waits.
func Replace(path string, data []byte) error {
	return files.Wait(func() error { return ReplaceNow(path, data) })
}

// ReplaceNow is Replace, and does not wait.
func ReplaceNow(path string, data []byte) error {
	return Explain(files.At(path).ReplaceNow(data), path, int64(len(data)))
}
