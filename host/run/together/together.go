// Package together is what the ranks of a run do together, as one of them sees it: they join and leave, compare what
// they are to do, decide what none may decide alone, tell rank 0 of clips that cannot be used, and compare their
// weights. Every method of a nil *Ranks is that of a run of one process.
package together

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/gpu/nccl"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/ranks/feed"
	"github.com/xtts-host/xtts-host/host/ranks/launch"
	"github.com/xtts-host/xtts-host/host/ranks/meet"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/runfolder"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train"
)

// meetLimit is how long the ranks wait for each other: a scheduler may start them minutes apart.
const meetLimit = 10 * time.Minute

// Ranks are all processes that train the model of a run, as this one sees them. It implements train.Coordinator. A nil
// Ranks is a run of one process.
type Ranks struct {
	*meet.Group
	secret     string
	quarantine atomic.Pointer[batch.Quarantine] // of rank 0, once it is open
	cancel     context.CancelCauseFunc          // of the run
	near       bool                             // all ranks can share memory
	over       chan struct{}                    // closed when this rank leaves
	leave      sync.Once
	notes      notes
	stepped    bool  // this process has made a step
	agreed     int64 // the last step after which the weights were those of all
}

// Join joins the ranks of a run, if it has several, and sets which of them are on the machine of this one. cancel ends
// the run of this process, for a reason that arrives at any time. say gets lines for a person while the ranks join, and
// ends the one that says why the run ends.
func Join(
	ctx context.Context, cancel context.CancelCauseFunc, c *config.Config, found launch.Found, say, ends io.Writer,
) (*Ranks, error) {
	if found.Alone() {
		return nil, nil
	}
	r := &Ranks{secret: found.Secret, cancel: cancel, over: make(chan struct{}), notes: newNotes()}
	var err error
	r.Group, err = meet.Join(ctx, meet.Config{
		World: found.World, Address: found.Address, Secret: found.Secret, Wait: meetLimit,
		Silence: time.Duration(c.RankTimeout * float64(time.Second)), Noted: r.noted,
		Say:  func(line string) { fmt.Fprintln(say, line) },
		Ends: func(line string) { fmt.Fprintln(ends, line) },
	})
	if err != nil {
		return nil, exit.Refused(err)
	}
	go func() { // until Close: a start of minutes, or a long wait, is not for one rank alone
		select {
		case <-r.Lost():
			cancel(r.Err())
		case <-r.over:
		}
	}()
	if c.World.Machine, err = feed.Find(r.Group, found.MachineName); err != nil {
		return nil, exit.Refused(errors.Join(err, r.Close(err)))
	}
	r.near = c.World.Near()
	return r, nil
}

// Close leaves the others: after the end that all have agreed on, or with the reason why this rank ends alone. It is
// idempotent.
func (r *Ranks) Close(outcome error) error {
	if r == nil {
		return nil
	}
	r.leave.Do(func() { close(r.over) })
	if exit.Interrupted(outcome) && !exit.IsRefusal(outcome) { // all ranks have stopped after the same step
		outcome = nil
	}
	return r.Group.Close(outcome)
}

// Asked names the ranks that were asked to stop in an interruption, which has ended all of them after the same step. An
// interruption by this rank's own stop stays as it is.
func (r *Ranks) Asked(outcome error, stop <-chan struct{}) error {
	if r == nil || !exit.Interrupted(outcome) {
		return outcome
	}
	own := false
	select {
	case <-stop:
		own = true
	default:
	}
	all, err := Exchange(r, own)
	if err != nil || own {
		return outcome
	}
	var asked []string
	for rank, was := range all {
		if was {
			asked = append(asked, fmt.Sprint(rank))
		}
	}
	switch len(asked) {
	case 0:
		return outcome
	case 1:
		return fmt.Errorf("%w: rank %s was asked to stop", outcome, asked[0])
	}
	return fmt.Errorf("%w: the ranks %s were asked to stop", outcome, strings.Join(asked, ", "))
}

// Fail tells the others at once that this rank ends because of an error, before it saves what it has.
func (r *Ranks) Fail(outcome error) {
	if r != nil && outcome != nil && !exit.Interrupted(outcome) {
		r.Group.Fail(outcome)
	}
}

// Because returns why this rank has failed: if its error is an effect of the end of another one, the reason of that.
func (r *Ranks) Because(err error) error {
	if r == nil || r.Err() == nil {
		return err
	}
	_, lost := errors.AsType[*meet.LostError](err)
	if lost || errors.Is(err, context.Canceled) || errors.Is(err, nccl.ErrEnded) || errors.Is(err, train.ErrTogether) {
		return r.Err()
	}
	return err
}

// Agree returns an error if the ranks are not to do the same. It names what differs.
func (r *Ranks) Agree(p *plan.Plan) error {
	if r == nil {
		return nil
	}
	return r.Group.Agree(p.Facts())
}

// Claim takes the run folder. Rank 0 has that of the run, and each of the others a folder in it, for its own lines.
func (r *Ranks) Claim(set *config.Set, now time.Time) (*runfolder.Folder, error) {
	if r == nil {
		return runfolder.Claim(set, now)
	}
	if !r.Leads() {
		dir, err := r.Share(nil)
		if err != nil {
			return nil, err
		}
		return runfolder.ClaimRank(string(dir), r.World().Rank)
	}
	f, err := runfolder.Claim(set, now)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(f.Path)
	if err == nil {
		_, err = r.Share([]byte(dir))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(exit.Refused(err)))
	}
	return f, nil
}
