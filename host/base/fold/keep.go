package fold

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// joined stands for a space in a path while a line is folded.
const joined rune = 0

var (
	kept  []string
	guard sync.RWMutex
)

// Keep has paths stay whole in every line that is folded from now on, though they have spaces: a path that is broken
// cannot be copied. So do the names of files below them, to their extensions.
func Keep(paths ...string) {
	guard.Lock()
	defer guard.Unlock()
	for _, path := range paths {
		names := []string{path, filepath.Clean(path)}
		if absolute, err := filepath.Abs(path); err == nil {
			names = append(names, absolute)
		}
		for _, name := range names {
			if strings.Contains(strings.TrimSpace(name), " ") && !strings.Contains(name, "\n") {
				kept = append(kept, name)
			}
		}
	}
}

// below is the rest of a path below a kept one, to the extension of a file.
var below = regexp.MustCompile(`^/[^:;,()'"]{0,300}?\.[a-zA-Z][a-zA-Z0-9]{1,5}([\s:;,)'"]|$)`)

// Join replaces the spaces of the kept paths in a text by NUL, which no text has that can be seen. Split undoes it.
func Join(text string) string {
	guard.RLock()
	defer guard.RUnlock()
	out := []byte(text)
	for _, path := range kept {
		for at := 0; ; {
			i := strings.Index(text[at:], path)
			if i < 0 {
				break
			}
			start := at + i
			at = start + len(path)
			end := at + len(strings.TrimRight(below.FindString(text[at:]), " :;,)'\""))
			for k := start; k < end; k++ {
				if out[k] == ' ' {
					out[k] = byte(joined)
				}
			}
		}
	}
	return string(out)
}

// Split returns a text, or a part of it, that Join has changed.
func Split(text string) string { return strings.ReplaceAll(text, string(joined), " ") }
