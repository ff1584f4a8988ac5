package together

import (
	"encoding/json"

	"github.com/xtts-host/xtts-host/host/observe/report"
)

// unusable is a note about a clip that a rank cannot use.
type unusable struct {
	Found   *report.Quarantined `json:",omitempty"` // it was found
	Trained string              `json:",omitempty"` // training has passed the row with this id
}

// Found tells rank 0 of a clip that cannot be used: it lists those of all ranks, and decides when they are too many.
func (r *Ranks) Found(row report.Quarantined) { r.note(unusable{Found: &row}) }

// Trained tells rank 0 that training has passed a row that cannot be used.
func (r *Ranks) Trained(id string) { r.note(unusable{Trained: id}) }

func (r *Ranks) note(u unusable) {
	if r == nil || r.Leads() {
		return
	}
	data, err := json.Marshal(u)
	if err == nil {
		err = r.Note(data)
	}
	if err != nil {
		r.cancel(err)
	}
}

// noted takes a note of another rank. No rank sends one before Ready has returned.
func (r *Ranks) noted(_ int, data []byte) {
	var u unusable
	q := r.quarantine.Load()
	if err := json.Unmarshal(data, &u); err != nil || q == nil {
		return // a program of another version; agree has refused it
	}
	if u.Found != nil {
		if err := q.Add(*u.Found); err != nil {
			r.cancel(err)
		}
	}
	if u.Trained != "" {
		q.Trained(u.Trained)
	}
}
