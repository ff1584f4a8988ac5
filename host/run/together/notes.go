package together

import (
	"encoding/json"
	"sync/atomic"

	"github.com/xtts-host/xtts-host/host/observe/report"
)

// unusable is a note about a clip that a rank cannot use.
type unusable struct {
	Found   *report.Quarantined `json:",omitempty"` // it was found
	Trained string              `json:",omitempty"` // training has passed the row with this id
}

// notes counts those of the others that training has passed a row that cannot be used. How many there are is known of
// each step, and a note may come later than that.
type notes struct {
	received atomic.Int64
	arrived  chan struct{} // has one element when received has grown
	due      int64         // after the last step
	own      int64         // rows of rank 0 in the step under way
}

func newNotes() notes { return notes{arrived: make(chan struct{}, 1)} }

// step counts the notes that are due after a step in which all ranks have left out so many rows.
func (n *notes) step(leftOut int) { n.due, n.own = n.due+int64(leftOut)-n.own, 0 }

// Settle returns when rank 0 has got the notes of all steps so far, so that a checkpoint lists what other ranks have
// left out, or when a rank is missing.
func (r *Ranks) Settle() {
	if r == nil || !r.Leads() {
		return
	}
	for r.notes.received.Load() < r.notes.due {
		select {
		case <-r.notes.arrived:
		case <-r.Lost():
			return
		}
	}
}

// Found tells rank 0 of a clip that cannot be used: it lists those of all ranks, and decides when they are too many.
func (r *Ranks) Found(row report.Quarantined) { r.note(unusable{Found: &row}) }

// Trained tells rank 0 that training has passed a row that cannot be used.
func (r *Ranks) Trained(id string) {
	if r != nil {
		r.notes.own++
	}
	r.note(unusable{Trained: id})
}

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
		r.notes.received.Add(1)
		select {
		case r.notes.arrived <- struct{}{}:
		default:
		}
	}
}
