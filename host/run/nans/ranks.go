package nans

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/train/nantrace"
)

// nowhere is the place of a trace that has found nothing.
const nowhere = "nowhere"

// answer is what a rank tells the others of its rows in a step: neither, if it has not looked.
type answer struct {
	Found json.RawMessage `json:",omitempty"` // a Trace
	Error string          `json:",omitempty"`
}

func answerOf(found *Trace, err error) answer {
	var text []byte
	if err == nil {
		text, err = found.encode()
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Found: text}
}

// concerned reports whether this rank looks for the origin of a step: if its own loss is not finite, or if no rank's
// is, as when gradients overflow. Ranks of one machine share its cores.
func (t *Tracer) concerned(s *event.Step) bool {
	bad := func(r event.RankRows) bool { return r.Bad }
	if slices.ContainsFunc(s.Ranks, bad) && !s.Ranks[t.Plan.World.Rank].Bad {
		return false
	}
	return len(s.Rows) > 0
}

// origin returns the trace of the first rank that has found one. If none has, and none has failed to look, it has the
// clips of all.
func origin(ranks []answer) (*Trace, error) {
	var first *Trace
	var failed error
	for rank, a := range ranks {
		switch {
		case a.Error != "" && failed == nil:
			if failed = errors.New(a.Error); len(ranks) > 1 {
				failed = fmt.Errorf("rank %d: %s", rank, a.Error)
			}
		case a.Found != nil:
			found := &Trace{Found: new(nantrace.Found)}
			if err := json.Unmarshal(a.Found, found); err != nil {
				return nil, err
			}
			if len(ranks) > 1 {
				found.Ranks = len(ranks)
			}
			if found.Where != nowhere {
				found.Rank = rank
				return found, nil
			}
			for i := range found.Clips {
				found.Clips[i].Rank = rank
			}
			if first == nil {
				first = found
			} else {
				first.Clips = append(first.Clips, found.Clips...)
			}
		}
	}
	if failed == nil && first == nil {
		failed = errors.New("no rank has rows")
	}
	return first, failed
}
