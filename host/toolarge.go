package host

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// tooLarge explains why what is made on the model GPU does not fit, and finds the largest batch that does: the job has no model behind it.
// graphs is what graphs have taken, where all have run. Other errors are returned as they are. ctx ends the search.
func (j *job) tooLarge(ctx context.Context, err error, graphs int) error {
	if j.device.Context == nil || !exit.OutOfMemory(err) {
		return err
	}
	defer j.device.enter()()
	if cerr := j.closeModel(); cerr != nil {
		return errors.Join(err, cerr)
	}
	plan := j.device.plan
	rows, sure := 0, false
	if !j.benchmarked() && !j.growsWithPlugins() {
		rows, sure = j.largestBatch(ctx)
	}
	return j.refuseBatch(err, plan, graphs, rows, sure)
}

// benchmarked: a batch that does not fit is a figure there, and another size is next.
func (j *job) benchmarked() bool { return j.feeding != batch.Overlapped }

// growsWithPlugins: what plugins take of the same GPU depends on the batch, and trials have those of the batch that was refused, or none.
func (j *job) growsWithPlugins() bool { return j.placement.Shared() && j.placement.Model.Limit == 0 }

// refuseBatch words the refusal of a batch. rows of it fit, and sure says that one row more does not.
func (j *job) refuseBatch(err error, p memoryPlan, graphs, rows int, sure bool) error {
	room, _ := p.room()
	limited := room > 0 && errors.Is(err, ort.ErrOutOfMemory) // the limit is that of ONNX Runtime's arenas
	if graphs == 0 {                                          // the error is that of an allocation
		batch, has := fmt.Sprintf("a batch of %d rows", j.cfg.BatchSize), "the GPU has"
		if large, ok := errors.AsType[*train.TooLargeError](err); ok {
			batch += fmt.Sprintf(" in bucket %d", large.Bucket)
			err = large.Err
		}
		if limited {
			has = fmt.Sprintf("the %d MB that --model-gpu-memory %dMB leaves for it", room/gpu.MB, p.limit/gpu.MB)
		}
		err = fmt.Errorf("%s needs more memory than %s: %w", batch, has, err)
	}
	var advice []string
	switch {
	case rows > 0 && sure:
		advice = append(advice, fmt.Sprintf("--batch-size %d, the largest that fits", rows))
	case rows > 0:
		advice = append(advice, fmt.Sprintf("--batch-size %d, which fits", rows))
	case !sure:
		advice = append(advice, "a smaller --batch-size")
	}
	if len(advice) > 0 {
		advice = append(advice, fmt.Sprintf("a smaller --buffer-size than %d", j.cfg.BufferSize), fmt.Sprintf("--accumulate %d with a smaller batch", 2*j.cfg.Accumulate))
	} else {
		err = fmt.Errorf("not even one row fits: %w", err)
	}
	switch {
	case graphs > 0:
		advice = append(advice, fmt.Sprintf("--model-gpu-memory %d", p.need(graphs)))
	case limited:
		advice = append(advice, fmt.Sprintf("--model-gpu-memory above %d", p.limit/gpu.MB))
	case len(advice) == 0:
		advice = append(advice, "a GPU with more memory")
	}
	return hint.Errorf("try "+strings.Join(advice, ", then "), "%w", err)
}

// searchTime is how long smaller batches are tried; the last trial may end later.
const searchTime = time.Minute

// largestBatch finds the largest batch below the one asked for that fits, by trial; 0 when none does. sure is false when it was stopped.
func (j *job) largestBatch(ctx context.Context) (rows int, sure bool) {
	room, _ := j.device.plan.room()
	if room == 0 {
		free, _, err := j.device.Context.MemInfo()
		if err != nil {
			return 0, false
		}
		room = free
	}
	if j.cfg.BatchSize > 1 {
		j.log.Warn("the batch does not fit on the GPU: smaller ones are tried")
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	guess := j.guessBatch(room * 7 / 10) // what the shapes say was 1.4 times what fitted on an H200: the arena has gaps, and CUDA graphs take memory
	return searchLargest(j.cfg.BatchSize, guess, room, func(rows int) (int, error) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		graphs, err := j.tryBatch(rows)
		if err = errors.Join(err, j.closeModel()); err != nil && !exit.OutOfMemory(err) {
			j.log.Warn(fmt.Sprintf("no smaller batch is tried: %v", err))
		}
		return graphs, err
	})
}

// guessBatch is the largest batch below the one asked for that fits by the shapes of the training graph.
func (j *job) guessBatch(room int) int {
	bucket := len(j.bundle.Manifest.Buckets) - 1
	return sort.Search(j.cfg.BatchSize-1, func(rows int) bool { // whether one row more is too much
		c := j.bundle.Step(bucket, rows+1)
		return c.Problem != "" || c.ActivationBytes >= float64(room)
	})
}

// searchLargest finds the largest number of rows below high that fit, first trying guess. try returns what the graphs take of some room
// bytes, an error about memory when they find too little, and any other to end the search, which is not sure then.
func searchLargest(high, guess, room int, try func(rows int) (graphs int, err error)) (low int, sure bool) {
	for next := min(max(guess, 1), high-1); high-low > 1; {
		graphs, err := try(next)
		switch {
		case err == nil:
			low = next
		case exit.OutOfMemory(err):
			high = next
		default:
			return low, false
		}
		next = (low + high) / 2
		if err == nil && graphs > 0 { // it grows with the rows, and the room with other things, too: so this is a guess
			if n := int(float64(low) * float64(room) / float64(graphs)); low < n && n < high {
				next = n
			}
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
