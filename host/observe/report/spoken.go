package report

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// Spoken describes the sentences that a run speaks at its evaluations.
type Spoken struct {
	Folder    string `json:"folder"`    // in the run folder
	Sentences int    `json:"sentences"` // of the list, which an evaluation speaks unless it is stopped
	// Steps are those of the evaluations of the whole run that have spoken a sentence.
	Steps []int64 `json:"steps"`
	// Files counts the sentences that they have spoken.
	Files int `json:"files"`
	// Last is the folder of the last one, in the run folder, and LastFiles how many sentences it has.
	Last      string `json:"last,omitempty"`
	LastFiles int    `json:"last_files,omitempty"`
	// Incomplete counts the evaluations of this process of which samples are missing.
	Incomplete int `json:"incomplete"`
}

// spoken writes the line about the samples.
func (t *table) spoken(s *Spoken) {
	if s == nil {
		return
	}
	at, text := units.Count(len(s.Steps), "evaluation"), ""
	switch {
	case len(s.Steps) == 0:
		text = "none of the " + units.Count(s.Sentences, "sentence")
	case s.Files == s.Sentences*len(s.Steps):
		text = fmt.Sprintf("%s at %s, the last in %s", units.Count(s.Sentences, "sentence"), at, s.Last)
	default:
		text = fmt.Sprintf("%s at %s of %d each, the last in %s with %d", units.Count(s.Files, "sentence"), at,
			s.Sentences, s.Last, s.LastFiles)
	}
	if s.Incomplete > 0 {
		text += fmt.Sprintf("; %d not complete: log.jsonl says why", s.Incomplete)
	}
	t.row("spoken", text)
}
