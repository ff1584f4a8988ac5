package plugintest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// check is a rule of docs/plugin-protocol.md.
type check struct {
	name string
	hint string // empty: that of the error
	bits bool   // only for stages that are declared deterministic
	run  func(context.Context, *subject) error
}

// checks are in an order in which each can use what those before it have found out.
var checks = []check{
	{"starts and accepts its configuration", "", false, start},
	{
		"full, short and odd rows",
		"write all outputs that plugin.json declares, within their tensors and ranges, and nothing else", false,
		lengths,
	},
	{
		"padding after each row", "write the pad value of each output after the row's length (Batch.Pad, Tensor.pad)",
		false, pad,
	},
	{"empty rows", "leave a row of length 0 empty: length 0 and padding", false, emptyRows},
	{"no write after the answer", "answer when all threads have finished with the slot", false, lateWrites},
	{
		"same batch, same bits",
		"draw random numbers only from the row's key, and keep no state from one call to the next", true, repeat,
	},
	{"any place in any batch", "let each row depend on nothing but its content and its key", true, position},
	{
		"asked for its draws", "let a report be of what was drawn anyway: it must not change what the stage does", true,
		askedForDraws,
	},
	{
		"any epoch, if cacheable", "declare a stage cacheable only if it uses neither the row's key nor its source",
		true, anyEpoch,
	},
	{"many batches at a time", "share no scratch memory between calls", false, together},
	{
		"few lines on its standard error",
		"write at most ten lines for a batch: the host drops those beyond 200 per second", false, quiet,
	},
	{
		"two processes", "use nothing that differs between processes, such as a process id, a clock or a file", true,
		processes,
	},
	{"a call whose caller has gone", "answer every call, also if its context has ended", false, canceled},
	{
		"memory does not grow with the calls", "free what a call allocates, or allocate it once in Configure", false,
		growing,
	},
	{"killed in a call", "keep nothing between two lives of the process that a call depends on", false, killed},
	{
		"its configuration has an effect",
		"read the configuration in Configure, and use it: another value of one key at least gives other outputs", true,
		configured,
	},
	{"SIGINT", "ignore SIGINT: Ctrl-C is for the host, which lets its plugins finish", false, interrupted},
	{"ends when asked to", "answer Drain, end the stream, exit with status 0, and end child processes", false, end},
	{"ends with the host", "exit when descriptor 4 reaches its end of file", false, lifeline},
}

func start(ctx context.Context, t *subject) (err error) {
	t.verified, err = t.open(ctx, 1, true)
	return err
}

func lengths(ctx context.Context, t *subject) error {
	for bucket := range t.noise.layouts {
		for slot := range slots {
			if _, err := t.verified.run(ctx, slot, bucket, mixed); err != nil {
				return err
			}
		}
	}
	return nil
}

func pad(ctx context.Context, t *subject) error {
	for bucket := range t.noise.layouts {
		if _, err := t.verified.run(ctx, 0, bucket, mixed); err != nil {
			return err
		}
		if why := t.noise.badPadding(t.verified.ring.Slot(0), bucket, mixed, false); why != "" {
			return errors.New(why)
		}
	}
	return nil
}

func emptyRows(ctx context.Context, t *subject) error {
	for bucket := range t.noise.layouts {
		for _, clips := range [][]int32{mixed, {empty, empty, empty, empty, empty}, {empty, empty, empty, empty, 2}} {
			if _, err := t.verified.run(ctx, 0, bucket, clips); err != nil {
				return err
			}
			if why := t.noise.badPadding(t.verified.ring.Slot(0), bucket, clips, true); why != "" {
				return errors.New(why)
			}
		}
	}
	return nil
}

// lateWrites looks at each slot again when the process has had time to write to it: during the call after it.
func lateWrites(ctx context.Context, t *subject) error {
	for i := range 2*slots + 1 {
		if _, err := t.verified.run(ctx, i%slots, 0, mixed); err != nil {
			return err
		}
	}
	return nil
}

// repeat finds a stage whose outputs change. No other check of it compares them, since each would fail for the same
// reason.
func repeat(ctx context.Context, t *subject) (err error) {
	defer func() { t.changing = err != nil }()
	for bucket := range t.noise.layouts {
		for range 3 {
			if err := t.verified.sameAs(ctx, 0, bucket, mixed); err != nil {
				return err
			}
		}
	}
	return nil
}

func position(ctx context.Context, t *subject) error {
	for bucket := range t.noise.layouts {
		for _, clips := range [][]int32{{3, 2, 1, empty, 0}, {2, 2, 2, 2, 2}, {empty, empty, empty, empty, 0}} {
			if err := t.verified.sameAs(ctx, 1, bucket, clips); err != nil {
				return err
			}
		}
	}
	return nil
}

// askedForDraws compares batches of which the host wants to know what was drawn with those of which it does not.
func askedForDraws(ctx context.Context, t *subject) error {
	t.verified.report = true
	defer func() { t.verified.report = false }()
	for bucket := range t.noise.layouts {
		if err := t.verified.sameAs(ctx, 0, bucket, mixed); err != nil {
			return err
		}
	}
	return nil
}

// anyEpoch has other keys for the same content, which is said to be of other clips.
func anyEpoch(ctx context.Context, t *subject) error {
	if !t.stage.Cacheable {
		return skipped("the stage is not declared cacheable")
	}
	t.verified.epoch = 1
	t.verified.trial.Rename([]string{"other-0", "other-1", "other-2", "other-3"}, []int{7, 8, 9, 10})
	defer func() {
		t.verified.epoch = 0
		t.verified.trial.Rename(clipNames, clipSamples)
	}()
	for bucket := range t.noise.layouts {
		if err := t.verified.sameAs(ctx, 0, bucket, mixed); err != nil {
			return err
		}
	}
	return nil
}

// together has a batch in every slot, of different buckets, and sends them in turns of different orders.
func together(ctx context.Context, t *subject) (err error) {
	for bucket := range t.noise.layouts { // computed under the proof, one at a time
		if _, err := t.reference(ctx, bucket); err != nil {
			return err
		}
	}
	if t.plain, err = t.open(ctx, 1, false); err != nil {
		return err
	}
	errs := make([]error, slots)
	for turn := range 4 {
		var calls sync.WaitGroup
		for i := range slots {
			slot := (i*2 + turn) % slots
			calls.Go(func() {
				if err := t.plain.sameAs(ctx, slot, (slot+turn)%len(t.noise.layouts), mixed); err != nil {
					errs[slot] = err
				}
			})
		}
		calls.Wait()
	}
	for range 5 { // for the figures
		if _, err := t.plain.run(ctx, 0, len(t.noise.layouts)-1, full); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

func processes(ctx context.Context, t *subject) error {
	if _, err := t.reference(ctx, 0); err != nil {
		return err
	}
	two, err := t.open(ctx, 2, false)
	if err != nil {
		return err
	}
	defer two.close()
	errs := make([]error, slots)
	var calls sync.WaitGroup
	for slot := range slots {
		calls.Go(func() { errs[slot] = two.sameAs(ctx, slot, 0, mixed) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// canceled ends the context of a call that the process has got. The call still owns its slot until the answer.
func canceled(ctx context.Context, t *subject) error {
	if t.plain == nil {
		return skipped("many batches at a time were not possible")
	}
	before := t.plain.pool.PIDs()
	going, leave := context.WithCancel(ctx)
	defer leave()
	t.plain.during(func(int) { leave() })
	_, err := t.plain.run(going, 0, 0, mixed)
	t.plain.onBatch.Store(nil)
	if now := t.plain.pool.PIDs(); !slices.Equal(before, now) {
		return errors.Join(t.plain.lost("the process did not answer"), err)
	}
	return t.plain.sameAs(ctx, 0, 0, mixed)
}

// during calls do for the next calls that are sent.
func (s *session) during(do func(pid int)) { s.onBatch.Store(&do) }

func killed(ctx context.Context, t *subject) error {
	if t.plain == nil {
		return skipped("many batches at a time were not possible")
	}
	if _, err := t.plain.run(ctx, 0, 0, mixed); err != nil {
		return fmt.Errorf("the batch fails without that: %w", err)
	}
	restarts := t.plain.pool.Stats().Restarts
	var once sync.Once
	t.plain.during(func(pid int) { once.Do(func() { unix.Kill(pid, unix.SIGKILL) }) })
	_, first := t.plain.run(ctx, 0, 0, mixed) // fails, unless the answer was faster
	t.plain.onBatch.Store(nil)
	for limit := time.Now().Add(t.cfg.Deadline); t.plain.pool.Stats().Restarts == restarts ||
		len(t.plain.pool.PIDs()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			return errors.Join(fmt.Errorf("the process was not replaced within %v", t.cfg.Deadline), first)
		}
	}
	_ = t.restarted() // on purpose
	return t.plain.sameAs(ctx, 0, 0, mixed)
}

// quiet compares the lines that the processes have written with the calls that they have answered: no run has so many
// calls per second.
func quiet(_ context.Context, t *subject) error {
	const atStart, perCall = 100, 10
	for _, s := range []*session{t.verified, t.plain} {
		if s == nil {
			continue
		}
		stats := s.pool.Stats()
		if calls := int(stats.Calls); stats.Lines > atStart+perCall*calls {
			return fmt.Errorf("it wrote %d lines in %d calls", stats.Lines, calls)
		}
	}
	return nil
}

func interrupted(ctx context.Context, t *subject) error {
	if t.plain == nil {
		return skipped("many batches at a time were not possible")
	}
	before := t.plain.pool.PIDs()
	for _, pid := range before {
		unix.Kill(pid, unix.SIGINT)
	}
	for range 2 { // the signal may arrive during the first
		if err := t.plain.sameAs(ctx, 0, 0, mixed); err != nil {
			return err
		}
	}
	if !slices.Equal(before, t.plain.pool.PIDs()) {
		return t.plain.lost("the process ended after SIGINT")
	}
	return nil
}

func end(ctx context.Context, t *subject) error {
	s := t.plain
	if s == nil {
		s = t.verified
	}
	if err := s.pool.Drain(ctx); err != nil {
		return err
	}
	if left := s.pool.Stats().Orphans; left > 0 {
		return fmt.Errorf("it left %d child processes in other process groups", left)
	}
	return nil
}

func lifeline(ctx context.Context, t *subject) error {
	s, err := t.open(ctx, 1, false)
	if err != nil {
		return err
	}
	defer s.close()
	return s.pool.Abandon(t.cfg.Patience)
}
