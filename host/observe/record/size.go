package record

import "github.com/xtts-host/xtts-host/host/base/files"

// maxEntries bounds the files and folders that Size looks at.
const maxEntries = 200_000

// Size adds up the bytes of the files in a folder. It follows no link. all is false if there are too many files, or
// some cannot be read.
func Size(folder string) (bytes int64, all bool) {
	left := maxEntries
	return size(files.In(folder), &left)
}

func size(folder files.Path, left *int) (bytes int64, all bool) {
	entries, err := folder.ReadDir()
	all = err == nil
	for _, e := range entries {
		if *left--; *left < 0 {
			return bytes, false
		}
		if e.IsDir() {
			below, whole := size(folder.Join(e.Name()), left)
			bytes, all = bytes+below, all && whole
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
	}
	return bytes, all
}
