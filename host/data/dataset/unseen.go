package dataset

import (
	"cmp"
	"fmt"
	"slices"
)

// Clips is how many rows have a name.
type Clips struct {
	Name  string `json:"name"`
	Clips int    `json:"clips"`
}

// Unseen returns the speakers and the languages of the rows of b that no row of a has, those with most rows first.
func Unseen(a, b *Index) (speakers, languages []Clips) {
	speaker := func(ix *Index, r *Row) string { return ix.Speakers[r.SpeakerID] }
	language := func(ix *Index, r *Row) string { return ix.Languages[r.LanguageID] }
	return unseen(a, b, speaker), unseen(a, b, language)
}

func unseen(a, b *Index, name func(*Index, *Row) string) []Clips {
	known, counts := map[string]bool{}, map[string]int{}
	for i := range a.Rows {
		known[name(a, &a.Rows[i])] = true
	}
	for i := range b.Rows {
		if n := name(b, &b.Rows[i]); !known[n] {
			counts[n]++
		}
	}
	list := []Clips{}
	for n, clips := range counts {
		list = append(list, Clips{n, clips})
	}
	slices.SortFunc(list,
		func(a, b Clips) int { return cmp.Or(cmp.Compare(b.Clips, a.Clips), cmp.Compare(a.Name, b.Name)) })
	return list
}

// NoLanguages says which language the texts of the index have, of which no line names one, and what names it.
func NoLanguages(ix *Index) string {
	return fmt.Sprintf(
		"%s is the default, no line of %s names a language: a column does (--list-layout columns=id,text,language), "+
			"or the key \"language\" of JSON Lines", ix.Languages[ix.Rows[0].LanguageID], ix.List)
}
