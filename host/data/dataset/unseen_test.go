package dataset

import (
	"fmt"
	"testing"
)

// TestUnseen: names count, not the numbers of two lists, nor names without a row.
func TestUnseen(t *testing.T) {
	a := &Index{
		Speakers: []string{"anna", "ben", "cid"}, Languages: []string{"en", "de"},
		Rows: []Row{{SpeakerID: 1}, {SpeakerID: 0}},
	}
	b := &Index{Speakers: []string{"ben", "cid", "", "dora"}, Languages: []string{"de", "en"}, Rows: []Row{
		{SpeakerID: 0, LanguageID: 1}, {SpeakerID: 1}, {SpeakerID: 2, LanguageID: 1}, {SpeakerID: 3},
		{SpeakerID: 3, LanguageID: 1},
	}}
	speakers, languages := Unseen(a, b)
	if got := fmt.Sprint(speakers, languages); got != "[{dora 2} { 1} {cid 1}] [{de 2}]" {
		t.Error(got)
	}
	if speakers, languages := Unseen(a, a); len(speakers)+len(languages) > 0 {
		t.Errorf("%v %v", speakers, languages)
	}
}
