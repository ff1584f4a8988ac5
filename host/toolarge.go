package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func outOfMemory(err error) bool {
	return errors.Is(err, ort.ErrOutOfMemory) || errors.Is(err, gpu.ErrOutOfMemory)
}

// tooLarge explains why a batch does not fit on the GPU, and finds the largest that does. graphs is what its graphs have taken, where all
// have run. The job has no model behind it.
func (j *job) tooLarge(ctx context.Context, err error, graphs int) error {
	p := j.device.plan
	room, _ := p.room()
	if graphs == 0 { // the error is that of an allocation
		batch, has := fmt.Sprintf("a batch of %d rows", j.cfg.BatchSize), "the GPU has"
		if large, ok := errors.AsType[*train.TooLargeError](err); ok {
			batch += fmt.Sprintf(" in bucket %d", large.Bucket)
			err = large.Err
		}
		if room > 0 {
			has = fmt.Sprintf("the %d MB that --model-gpu-memory %dMB leaves for it", room/gpu.MB, p.limit/gpu.MB)
		}
		err = fmt.Errorf("%s needs more memory than %s: %w", batch, has, err)
	}
	rows, sure := j.largestBatch(ctx, room)
	var advice []string
	switch {
	case rows == 0 && sure:
		err = fmt.Errorf("not even one row fits: %w", err)
	case sure:
		advice = append(advice, fmt.Sprintf("--batch-size %d, the largest that fits", rows))
	case rows > 0:
		advice = append(advice, fmt.Sprintf("--batch-size %d, which fits", rows))
	default:
		advice = append(advice, "a smaller --batch-size")
	}
	if rows > 0 || !sure {
		advice = append(advice, fmt.Sprintf("a smaller --buffer-size than %d", j.cfg.BufferSize), fmt.Sprintf("--accumulate %d with a smaller batch", 2*j.cfg.Accumulate))
	}
	switch {
	case graphs > 0:
		advice = append(advice, fmt.Sprintf("--model-gpu-memory %d", p.need(graphs)))
	case p.limit > 0:
		advice = append(advice, fmt.Sprintf("--model-gpu-memory above %d", p.limit/gpu.MB))
	case len(advice) == 0:
		advice = append(advice, "a GPU with more memory")
	}
	return hint.Errorf("try "+strings.Join(advice, ", then "), "%w", err)
}

// searchTime is how long smaller batches are tried; the last trial may end later.
const searchTime = time.Minute

// largestBatch finds the largest batch that fits, by trial; 0 when none does. sure says whether it had the time for that. Where several
// batches are measured, it does not take it.
func (j *job) largestBatch(ctx context.Context, room int) (rows int, sure bool) {
	if err := j.closeModel(); err != nil || j.feeding != overlapped {
		return 0, false
	}
	j.log.Warn("the batch does not fit on the GPU: smaller ones are tried")
	if room == 0 {
		free, _, err := j.device.Context.MemInfo()
		if err != nil {
			return 0, false
		}
		room = free
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	guess := j.guessBatch(room * 7 / 10) // what the shapes say was 1.4 times what fitted on an H200: the arena has gaps, and CUDA graphs take memory
	return searchLargest(j.cfg.BatchSize, guess, room, func(rows int) (int, error) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		graphs, err := j.tryBatch(rows)
		return graphs, errors.Join(err, j.closeModel())
	})
}

// guessBatch is the largest batch by the shapes of the training graph.
func (j *job) guessBatch(room int) int {
	low, high := 0, j.cfg.BatchSize // low fits, high does not
	for high-low > 1 {
		rows := (low + high) / 2
		if c := j.bundle.Step(len(j.buckets)-1, rows); c.Problem == "" && c.ActivationBytes < float64(room) {
			low = rows
		} else {
			high = rows
		}
	}
	return low
}

// searchLargest finds the largest number of rows below high that fit into room bytes, first trying guess. try returns what the graphs take
// of the room, an error about memory when they find too little, and any other to end the search, which is not sure then.
func searchLargest(high, guess, room int, try func(rows int) (graphs int, err error)) (low int, sure bool) {
	for next := guess; high-low > 1; {
		next = min(max(next, low+1), high-1)
		switch graphs, err := try(next); {
		case err == nil:
			low = next
			if next = (low + high) / 2; graphs > 0 {
				next = int(float64(low) * float64(room) / float64(graphs)) // it grows with the rows
			}
		case outOfMemory(err):
			high = next
			next = (low + high) / 2
		default:
			return low, false
		}
	}
	return low, true
}

// tryBatch makes the model for batches of so many rows, as a run does, and returns what its graphs take.
func (j *job) tryBatch(rows int) (graphs int, err error) {
	if err := j.layOut(rows); err != nil {
		return 0, err
	}
	d := &j.device
	d.plan = j.newMemoryPlan()
	room, err := d.plan.room()
	if err != nil {
		return 0, err
	}
	if d.CUDA != nil {
		d.CUDA.MemoryLimit = room
	}
	if err := j.openModel(); err != nil {
		return 0, err
	}
	p, _, err := j.prepareModel()
	return p.ArenaBytes, err
}
