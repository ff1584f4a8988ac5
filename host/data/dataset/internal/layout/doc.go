// Package layout recognises how a data set is laid out: which file is the list, what separates its columns, which
// column is the clip, its text, its speaker and its language, and where the recordings are.
// docs/data-layouts.md has the rules.
//
// Recognise reads a whole list before anything else does. It decides by what the list and the folder show. What can be
// read in two ways is an error that has both readings; it never guesses.
//
//	d, err := layout.Recognise(layout.Source{Dir: dir, List: "metadata.csv", Exists: exists}, asked)
//	...
//	clip := d.Layout.Cut(line, clean)
package layout
