package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// stageRunner sends batches to one stage instance, and checks the results before anything uses them.
type stageRunner struct {
	*common
	pool     supervise.Processes
	plugin   string
	instance catalog.Instance
	origin   origin    // of what it reads
	outputs  []outputs // by bucket
	judges   []judge   // by bucket
	traffic  []traffic // by bucket
	blanks   [][]blank // by bucket
	memo     *memo     // nil without a feature cache
	log      *slog.Logger
	reported sync.Map     // tensors of which a flaw was reported
	right    atomic.Int64 // rows without a flaw so far
	failures atomic.Int64
	attempts []attempts // by ring slot

	mu     sync.Mutex
	chosen chosen // guarded by mu
}

// attempts is what a stage runner records of the batch in a slot. Only the goroutine of the slot uses it.
type attempts struct {
	keys   []byte
	ids    []string
	parts  []*stagepb.Source
	kept   []byte  // values that the stage must not change
	failed int     // calls in a row
	ended  int     // processes since its last successful call that ended during it, or were ended for its result
	rows   []int32 // of the data set: with a flaw in an earlier attempt
	before []level // of the waveform that the stage reads, by row; nil if it reads none
	// of the last call, by row; with report, the stage is asked for them
	draws  []json.RawMessage
	report bool

	// of an instance whose rows are chosen
	given []int32 // as Batch.Rows, with leftOut
	left  []int   // the rows that are left out

	counted uint64 // one more than the Order of the last batch that was counted
}

// maxFailures consecutive failures of one batch end the run: a batch that fails three times does not fail by chance.
const maxFailures = 3

// maxEnds processes that end because of one batch end the run. supervise.RestartPolicy does not find such a batch if
// each process finishes other batches before, or if the deaths are far apart: a hang lasts until the deadline. The
// limit is one below that of the policy, so that it is certain which of the two reports the error if both apply.
const maxEnds = 5

func newStageRunner(
	c *common, pool supervise.Processes, plugin string, instance catalog.Instance, memo *memo, batchSize int,
	log *slog.Logger,
) *stageRunner {
	s := &stageRunner{
		common: c, pool: pool, plugin: plugin, instance: instance, memo: memo, log: log,
		attempts: make([]attempts, c.ring.Slots()), origin: c.origins[instance.Name],
	}
	for i := range s.attempts {
		a := &s.attempts[i]
		a.keys, a.ids, a.parts = make([]byte, batchSize*stage.KeySize), make([]string, batchSize), newSources(batchSize)
	}
	for i := range c.layouts {
		s.outputs = append(s.outputs, newOutputs(instance, &c.layouts[i], c.data.Train.Index.Columns))
		s.traffic = append(s.traffic, newTraffic(instance, &c.layouts[i]))
		s.blanks = append(s.blanks, blanks(instance, &c.layouts[i]))
		s.judges = append(s.judges, newJudge(instance, &c.layouts[i], c.ranges))
	}
	return s
}

// Process implements pipeline.Stage.
func (s *stageRunner) Process(ctx context.Context, b *pipeline.Batch) ([]pipeline.Rejected, time.Duration, error) {
	a, moved := &s.attempts[b.Slot], &s.traffic[b.Bucket]
	if err := s.intact(b, moved.edited, nil); err != nil { // another call caused it
		return nil, 0, err
	}
	rows, given := b.Rows, 0
	do := func() ([]pipeline.Rejected, time.Duration, error) {
		return s.compute(ctx, b, part{b.Rows, b.Rows, nil})
	}
	switch {
	case s.memo.uses(b.Eval):
		do = func() ([]pipeline.Rejected, time.Duration, error) { return s.recall(ctx, b) }
	case s.instance.Chosen():
		if given = s.choose(b, a); given == 0 {
			a.draws = nil
			s.count(b, given)
			return nil, 0, nil
		}
		if rows = a.given; len(a.left) > 0 {
			do = func() ([]pipeline.Rejected, time.Duration, error) { return s.some(ctx, b) }
		}
	}
	a.before = s.judges[b.Bucket].levels(s.ring.Slot(b.Slot), rows, a.before[:0])
	rejected, busy, err := do()
	if err == nil && len(rejected) == 0 {
		s.seals.set(b.Slot, moved.written)
		s.count(b, given)
	}
	return rejected, busy, err
}

// recall takes the rows that the feature cache has from there, and has the stage compute the others.
func (s *stageRunner) recall(ctx context.Context, b *pipeline.Batch) ([]pipeline.Rejected, time.Duration, error) {
	began := time.Now()
	a := &s.attempts[b.Slot]
	known := s.memo.look(s.ring.Slot(b.Slot), b.Bucket, b.Rows, a.counted == b.Order()+1)
	a.counted = b.Order() + 1
	defer known.free()
	known.fill()
	for i, row := range b.Rows { // the lengths that a row was kept with may not be those of another tensor in this run
		if known.has(i) && s.outputs[b.Bucket].checkLength(s.ring.Slot(b.Slot), i, row) != nil {
			known.drop(i, row)
		}
	}
	if known.missed == 0 {
		known.fillEmpty(b.Rows)
		rejected, err := s.examine(b, supervise.ProcessID{}, b.Rows)
		return rejected, time.Since(began), err
	}
	known.hide()
	looked := time.Since(began)
	rejected, busy, err := s.compute(ctx, b, part{known.sent, b.Rows, func() error { known.fill(); return nil }})
	if err == nil && len(rejected) == 0 {
		began = time.Now()
		known.store()
		looked += time.Since(began)
	}
	return rejected, looked + busy, err
}

// warnFailed warns of a failed call, but only a few times: the report counts all.
func (s *stageRunner) warnFailed(err error) {
	const few = 3
	text := fmt.Sprintf("%v; rebuilding the batch", err)
	switch n := s.failures.Add(1); {
	case n < few:
		s.log.Warn(text)
	case n == few:
		s.log.Warn(text + "; further failures of this stage are counted, but not shown")
	default:
		s.log.Info(text)
	}
}

// compute sends the batch to a process, and checks the result.
func (s *stageRunner) compute(ctx context.Context, b *pipeline.Batch, p part) (
	_ []pipeline.Rejected, _ time.Duration, err error,
) {
	a := &s.attempts[b.Slot]
	s.guards.enter(b.Slot, s.pool)
	defer func() { s.guards.leave(b.Slot, errors.Is(err, supervise.ErrLost)) }()
	if err := s.guards.check(b, nil); err != nil { // another plugin caused it
		return nil, 0, err
	}
	res, err := s.call(ctx, b, a, p.sent)
	switch {
	case err != nil && ctx.Err() != nil: // the run ends, perhaps because of another stage
		return nil, res.Busy, err
	case errors.Is(err, supervise.ErrLost):
		return nil, res.Busy, s.lost(b, a, err)
	case errors.Is(err, supervise.ErrFailed):
		if a.failed++; a.failed < maxFailures {
			s.warnFailed(err)
			return nil, res.Busy, fmt.Errorf("%w: %w", pipeline.ErrRebuild, err)
		}
		return nil, res.Busy, fmt.Errorf("%d times in a row (%s): %w", a.failed, s.describe(b), err)
	case err != nil:
		return nil, res.Busy, err
	}
	a.failed = 0
	by := &worker{pool: s.pool, process: res.Process, stage: s.instance.Name}
	if err := s.guards.check(b, by); err != nil {
		if by.culprit {
			err = s.lost(b, a, err)
		}
		return nil, res.Busy, err
	}
	if len(res.Bad) > 0 {
		rejected := make([]pipeline.Rejected, len(res.Bad))
		for i, bad := range res.Bad {
			if p.sent[bad.Row] < 0 {
				return nil, res.Busy, supervise.Violation(s.plugin,
					fmt.Errorf("it rejects row %d, which is empty (%s): %s", bad.Row, s.describe(b), bad.Reason))
			}
			rejected[i] = pipeline.Rejected{Row: bad.Row, Reason: s.reason(bad.Reason)}
		}
		return rejected, res.Busy, nil
	}
	if err := s.outputs[b.Bucket].checkKept(s.ring.Slot(b.Slot), a.kept); err != nil {
		return nil, res.Busy, s.replace(b, res.Process, err)
	}
	if p.complete != nil {
		if err := s.outputs[b.Bucket].checkCounts(s.ring.Slot(b.Slot), p.sent); err != nil {
			return nil, res.Busy, s.replace(b, res.Process, err)
		}
		if err := p.complete(); err != nil {
			return nil, res.Busy, err
		}
	}
	if err := s.intact(b, s.traffic[b.Bucket].read, nil); err != nil { // it may have read what another process wrote
		return nil, res.Busy, err
	}
	rejected, err := s.inspect(b, res.Process, p.judged)
	if err == nil {
		a.ended = 0
	}
	return rejected, res.Busy, err
}

// call sends the batch to a process. With a proof it works alone, and an error that wraps supervise.ErrViolation says
// what else than its outputs it wrote.
func (s *stageRunner) call(
	ctx context.Context, b *pipeline.Batch, a *attempts, rows []int32,
) (supervise.Result, error) {
	out := &s.outputs[b.Bucket]
	s.nameRows(a, b, rows)
	s.proof.begin(b.Slot, out)
	a.kept = out.save(s.ring.Slot(b.Slot), a.kept[:0])
	res, err := s.pool.Call(ctx, supervise.Request{
		Instance: s.instance.Index, Slot: b.Slot, Bucket: b.Bucket, Epoch: int64(b.Epoch), Step: b.Step,
		RowKeys: a.keys, ClipIDs: a.ids, Sources: s.sources(b, rows, a.parts), Report: a.report, Order: b.Order(),
	})
	if a.draws = res.Draws; a.draws != nil {
		for i, row := range rows {
			if row < 0 {
				a.draws[i] = nil // of nothing
			}
		}
	}
	if why := s.proof.end(b.Slot, out, err == nil && len(res.Bad) == 0); why != nil {
		return res, supervise.Violation(s.plugin, fmt.Errorf("%w (%s)", why, s.describe(b)))
	}
	return res, err
}

// lost requests a rebuild of the batch whose process has ended, unless this has happened too often. If the process was
// ended for a write outside its batch, this does not count against the batch. With a proof, an answer that breaks the
// protocol ends the run.
func (s *stageRunner) lost(b *pipeline.Batch, a *attempts, err error) error {
	p, ok := errors.AsType[*supervise.PluginError](err)
	switch {
	case ok && p.Violated && s.proof != nil:
		return supervise.Violation(s.plugin, fmt.Errorf("%s (%s)", p.Why(), s.describe(b)))
	case ok && p.Kicked:
		return fmt.Errorf("%w: %w", pipeline.ErrRebuild, err)
	}
	if a.ended++; a.ended >= maxEnds {
		return supervise.CrashLoop(s.plugin,
			fmt.Sprintf("%d processes in a row failed on the same batch (%s)", maxEnds, s.describe(b)), err)
	}
	return fmt.Errorf("%w: %w", pipeline.ErrRebuild, err)
}

// reason says who rejects a row, and why.
func (s *stageRunner) reason(why string) string {
	return fmt.Sprintf("plugin %s: stage %s: %s", s.plugin, s.instance.Name, why)
}

// shownClips is how many clips of a batch a message names.
const shownClips = 4

// describe names a batch for a message: its step, and its clips.
func (s *stageRunner) describe(b *pipeline.Batch) string {
	text := fmt.Sprintf("step %d, batch %d of epoch %d", b.Step+1, b.Index+1, b.Epoch+1)
	if b.Eval {
		text = fmt.Sprintf("batch %d of an evaluation", b.Index+1)
	}
	var ids []string
	rows := s.data.splitOf(b).Index.Rows
	for _, row := range b.Rows {
		if row >= 0 {
			ids = append(ids, rows[row].ID)
		}
	}
	if len(ids) == 0 {
		return text
	}
	text += ", clips " + strings.Join(ids[:min(len(ids), shownClips)], ", ")
	if more := len(ids) - shownClips; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// nameRows writes the key and the clip of each row that the stage computes.
func (s *stageRunner) nameRows(a *attempts, b *pipeline.Batch, rows []int32) {
	clips := s.data.splitOf(b).Index.Rows
	clear(a.keys)
	clear(a.ids)
	for i, row := range rows {
		if row >= 0 {
			a.ids[i] = clips[row].ID
			key := dataset.RowKey(s.seed, b.Epoch, a.ids[i], s.instance.Name)
			copy(a.keys[i*stage.KeySize:], key[:])
		}
	}
}

// inspect checks the outputs of the stage. A process that returns impossible lengths, or writes to an empty row, is
// replaced.
func (s *stageRunner) inspect(b *pipeline.Batch, id supervise.ProcessID, rows []int32) ([]pipeline.Rejected, error) {
	if err := s.outputs[b.Bucket].checkLengths(s.ring.Slot(b.Slot), b.Rows); err != nil {
		return nil, s.replace(b, id, err)
	}
	return s.examine(b, id, rows)
}

// misaligned rejects the rows whose columns do not have as many steps as the stage has counted.
func (s *stageRunner) misaligned(b *pipeline.Batch, rows []int32) (rejected []pipeline.Rejected) {
	s.outputs[b.Bucket].misaligned(s.ring.Slot(b.Slot), rows, s.data.splitOf(b).Index.Rows, func(i int, why string) {
		if !slices.ContainsFunc(rejected, func(r pipeline.Rejected) bool { return r.Row == i }) {
			rejected = append(rejected, pipeline.Rejected{Row: i, Reason: s.reason(why)})
		}
	})
	return rejected
}

// replace ends a process that violates the protocol, and with a proof the run.
func (s *stageRunner) replace(b *pipeline.Batch, id supervise.ProcessID, why error) error {
	if s.proof != nil {
		return supervise.Violation(s.plugin, fmt.Errorf("%w (%s)", why, s.describe(b)))
	}
	why = fmt.Errorf("stage %s: %w", s.instance.Name, why)
	s.pool.Kick(id, why.Error())
	return s.lost(b, &s.attempts[b.Slot], why)
}
