package summary

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/datafolder"
)

// namedFiles is how many files of a data folder a warning names.
const namedFiles = 3

// folders returns a line for each data folder with files that cannot be used, or that is not cached.
func folders(all []datafolder.Folder) (lines []string) {
	for i := range all {
		f := &all[i]
		if n := len(f.LeftOut); n > 0 {
			var named []string
			for _, l := range f.LeftOut[:min(n, namedFiles)] {
				named = append(named, l.Name+": "+visible.Clauses(l.Reason, maxReason))
			}
			if n > namedFiles {
				named = append(named, fmt.Sprintf("and %d more", n-namedFiles))
			}
			are := "are"
			if n == 1 {
				are = "is"
			}
			lines = append(lines, fmt.Sprintf("%s of data folder %s cannot be used and %s left out: %s",
				units.Count(n, "file"), f.Title, are, strings.Join(named, "; ")))
		}
		if f.CacheError != nil {
			lines = append(lines, fmt.Sprintf("the index of data folder %s is not cached, so the next start reads its "+
				"files again: %v (check space and permission to write in --cache-dir)", f.Title, f.CacheError))
		}
	}
	return lines
}

// maxReason is how much of a reason is shown, in bytes.
const maxReason = 300
