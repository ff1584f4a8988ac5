package samples

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/ranks/meet"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Ranks are the processes of a run, which share out the texts: each prepares, speaks and measures its own, and writes
// their files to the folder of the run. Rank 0 writes the lines, and it alone runs the recognizer: a command that may
// fill a GPU is run once at a time. All ranks make the same calls in the same order.
type Ranks interface {
	World() world.World
	// All returns the data of all ranks by rank, and Share that of rank 0.
	All(data []byte) ([][]byte, error)
	Share(data []byte) ([]byte, error)
}

// world is the rank of this process.
func (c *Config) world() world.World {
	if c.Ranks == nil {
		return world.World{}
	}
	return c.Ranks.World()
}

// rank returns which rank speaks a text.
func (s *Speaker) rank(t *text) int { return t.place % max(1, s.world().Size) }

// own returns the texts of this rank.
func (s *Speaker) own() (own []*text) {
	for _, t := range s.texts {
		if s.rank(t) == s.world().Rank {
			own = append(own, t)
		}
	}
	return own
}

// fromAll returns the values of all ranks by rank.
func fromAll[T any](c *Config, mine T) ([]T, error) {
	if c.Ranks == nil {
		return []T{mine}, nil
	}
	return meet.Exchange(c.Ranks, mine)
}

// FromLead returns the value of rank 0. Ranks may be nil.
func FromLead[T any](r Ranks, mine T) (T, error) {
	if r == nil {
		return mine, nil
	}
	return meet.FromLead(r, mine)
}

// told is an error as another rank gets it: "" for nil.
func told(err error) string {
	if err == nil {
		return ""
	}
	if advice := hint.Of(err); advice != "" {
		return fmt.Sprintf("%v (%s)", err, advice)
	}
	return err.Error()
}

// opening is what a rank tells the others when it has opened.
type opening struct {
	Error string // why it does not speak
	Fatal bool   // the run does not go on without
	Mute  []int  // places of its texts that are left out
	// Warned are its warnings, which rank 0 shows.
	Warned []string
}

// warn warns of a text before the ranks have told each other how they opened.
func (s *Speaker) warn(text string) {
	s.Log.Warn(text)
	s.warned = append(s.warned, text)
}

// opened tells the other ranks how this one has opened, and leaves out the texts that a rank cannot speak. It returns
// why the run speaks nothing; fatal reports whether it ends because of that. err is of this rank.
func (s *Speaker) opened(err error, mayBeMute func() bool) (fatal bool, _ error) {
	ranks, lost := fromAll(&s.Config, opening{told(err), err != nil && !mayBeMute(), s.mute, s.warned})
	if lost != nil {
		return true, errors.Join(err, lost)
	}
	var mute []int
	for rank, r := range ranks {
		mute, fatal = append(mute, r.Mute...), fatal || r.Fatal
		for _, text := range r.Warned {
			if rank > 0 && s.world().Leads() {
				s.Log.Warn(text)
			}
		}
		if err == nil && r.Error != "" {
			err = fmt.Errorf("rank %d: %s", rank, r.Error)
		}
	}
	s.texts = slices.DeleteFunc(s.texts, func(t *text) bool { return slices.Contains(mute, t.place) })
	if err == nil && len(s.texts) == 0 {
		return !mayBeMute(), s.explain(errors.New("no clip has a voice that can be heard"))
	}
	return fatal, err
}

// Ends of an evaluation that are no news of its speech.
var (
	errStopped = errors.New("the run stops")
	errLost    = errors.New("a rank is missing, which ends the run")
)

// said is what a rank tells the others of its text in a round.
type said struct {
	Utterance *event.Utterance `json:",omitempty"` // nil if it has none in the round, and after an error
	Anew      bool
	Error     string
	Stop      bool // of rank 0: the others say what they have begun
}

// round returns how many of the texts are spoken at the same time: the next ones, of which no rank has two. So their
// lines come in the order of the texts.
func (s *Speaker) round(texts []*text) int {
	busy := map[int]bool{}
	for i, t := range texts {
		if rank := s.rank(t); busy[rank] {
			return i
		} else {
			busy[rank] = true
		}
	}
	return len(texts)
}

// sayAll speaks what is left of the texts, round by round: each rank one text, and then all know what was said.
func (s *Speaker) sayAll(
	ctx context.Context, e *event.Spoken, failed error, say func(*text) (said, error),
) (anew bool, err error) {
	job := s.Bus.Begin(event.Work{Task: event.Speaking, Unit: "texts", Of: len(s.texts)})
	defer job.End()
	for left := s.texts; len(left) > 0; {
		job.Do(len(s.texts)-len(left), len(s.texts))
		round := left[:s.round(left)]
		left = left[len(round):]
		var mine said
		for _, t := range round {
			if s.rank(t) == s.world().Rank && failed == nil {
				mine, failed = say(t) // at most one of them is its own
			}
		}
		mine.Error, mine.Stop = told(failed), ctx.Err() != nil
		ranks, err := fromAll(&s.Config, mine)
		if err != nil {
			return anew, errLost
		}
		over := false
		for rank, r := range ranks {
			if over = over || r.Error != ""; failed == nil && r.Error != "" {
				failed = fmt.Errorf("rank %d: %s", rank, r.Error)
			}
		}
		for _, t := range round {
			r := ranks[s.rank(t)]
			anew = anew || r.Anew
			if r.Utterance != nil {
				failed = errors.Join(failed, s.keep(ctx, t, e, r))
			}
		}
		if ranks[0].Stop {
			return anew, errStopped
		}
		if over {
			break
		}
	}
	return anew, failed
}
