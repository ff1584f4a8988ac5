package report

import "fmt"

// Spoken describes the sentences that a run speaks at its evaluations.
type Spoken struct {
	Folder    string `json:"folder"` // in the run folder
	Sentences int    `json:"sentences"`
	// Steps are those of the evaluations of the whole run.
	Steps []int64 `json:"steps"`
	// Last is the folder of the last one, in the run folder.
	Last string `json:"last,omitempty"`
	// Incomplete counts the evaluations of this process of which samples are missing.
	Incomplete int `json:"incomplete"`
}

// spoken writes the line about the samples.
func (t *table) spoken(s *Spoken) {
	if s == nil {
		return
	}
	text := fmt.Sprintf("%s at %s", Count(s.Sentences, "sentence"), Count(len(s.Steps), "evaluation"))
	if s.Last != "" {
		text += ", the last in " + s.Last
	}
	if s.Incomplete > 0 {
		text += fmt.Sprintf("; %d not complete: log.jsonl says why", s.Incomplete)
	}
	t.row("spoken", text)
}
