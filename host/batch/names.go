package batch

import (
	"encoding/json"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/report"
)

// names are the speakers and languages of a run. The number of a name, which the model gets, is its place in the list.
type names struct {
	Speakers  []string `json:"speakers"`
	Languages []string `json:"languages"`
}

// WriteNames writes speakers.json: the speakers and languages by number, those of the training data first.
func (d Data) WriteNames(dir string) error {
	ix := d.Train.Index
	if d.Val != nil {
		ix = d.Val.Index // it begins with the names of the training data
	}
	text, err := json.MarshalIndent(names{ix.Speakers, ix.Languages}, "", " ")
	if err != nil {
		return err
	}
	return report.ReplaceFile(filepath.Join(dir, report.SpeakersFile), append(text, '\n'))
}
