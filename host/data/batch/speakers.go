package batch

import (
	"encoding/json"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/rundir"
)

// numbered has the speakers and languages of a run. The number of a name, which the model gets, is its place in the
// list.
type numbered struct {
	Speakers  []string `json:"speakers"`
	Languages []string `json:"languages"`
}

// Names returns the speakers and languages by number, those of the training data first.
func (d Data) Names() (speakers, languages []string) {
	ix := d.Train.Index
	if d.Val != nil {
		ix = d.Val.Index // it begins with the names of the training data
	}
	return ix.Speakers, ix.Languages
}

// WriteNames writes speakers.json.
func (d Data) WriteNames(dir string) error {
	speakers, languages := d.Names()
	text, err := json.MarshalIndent(numbered{speakers, languages}, "", " ")
	if err != nil {
		return err
	}
	return disk.Replace(filepath.Join(dir, rundir.SpeakersFile), append(text, '\n'))
}
