package dataset

import "path/filepath"

// clipKey identifies a clip: a recording and the part of it.
type clipKey struct {
	path           string
	offset, frames int
}

// Shared counts the rows of b whose clips are rows of a, too. Folders are compared through symbolic links.
func Shared(a, b *Index) int {
	folders := map[string]string{}
	key := func(r *Row) clipKey {
		folder, name := filepath.Split(r.Path)
		real, ok := folders[folder]
		if !ok {
			var err error
			if real, err = filepath.EvalSymlinks(folder); err != nil {
				real = folder // it was removed after it was indexed
			}
			folders[folder] = real
		}
		return clipKey{filepath.Join(real, name), r.Offset, r.Frames}
	}
	clips := make(map[clipKey]bool, len(a.Rows))
	for i := range a.Rows {
		clips[key(&a.Rows[i])] = true
	}
	n := 0
	for i := range b.Rows {
		if clips[key(&b.Rows[i])] {
			n++
		}
	}
	return n
}
