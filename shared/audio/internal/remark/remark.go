// Package remark names what is wrong with a recording that is read all the same, as other programs read it.
package remark

import "strings"

// Set is what is wrong with a file. The bits are part of the index cache: give them no other meaning.
type Set uint16

const (
	// Length says that the declared length is another one than that of the samples that the file has.
	Length Set = 1 << iota
	// Cut says that the end of the recording is missing.
	Cut
	// Junk says that bytes after the recording are neither audio nor a tag.
	Junk
	// Tag says that a tag of another format comes before the recording.
	Tag
	// Align says that the declared size of a frame is not that of its samples.
	Align
	// Start says that the beginning of the recording is missing.
	Start
)

// texts are those of the bits, from the lowest.
var texts = []string{
	"it declares another length than it has: the samples that it has were read",
	"its end is missing: it was read up to there",
	"bytes after its end are neither audio nor a tag: they were skipped",
	"a tag of another format comes before it: it was skipped",
	"it declares another size of a frame than its samples have: the samples count",
	"its beginning is missing: it was read from the first whole frame",
}

// String returns all that is wrong, or "".
func (s Set) String() string {
	var all []string
	for i, text := range texts {
		if s>>i&1 == 1 {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}
