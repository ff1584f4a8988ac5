package validate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/speak/samples"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/memory"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// cost is what the run of a validation takes.
type cost struct{ *validation }

// tryDuration multiplies: what is left of the run, by the times that were just measured.
func (v cost) tryDuration(context.Context) (string, error) {
	p := &v.draft.Plan
	from, source := p.Progress().Step, p.Source()
	steps := source.Total() - from
	if steps <= 0 {
		return "no step is left", nil
	}
	sizes := v.sizes()
	step := v.stepTime(sizes)
	total := step * time.Duration(steps)
	text := fmt.Sprintf("training %s: %s of about %s", units.Duration(total), units.Count(steps, "step"), ms(step))
	evaluations := evaluations(source, from)
	if evaluations > 0 {
		batches := p.Data.Val.Plan
		took, err := train.TryEvaluation(v.session.Model, len(sizes)-1)
		if err != nil {
			return "", v.session.Device.Full(err)
		}
		one := time.Duration(float64(took) * mean(batches, sizes) / sizes[len(sizes)-1])
		all := one * time.Duration(batches.Batches()) * time.Duration(evaluations)
		total += all
		text += fmt.Sprintf("\nevaluation %s: %s of %s of about %s", units.Duration(all),
			units.Count(evaluations, "time"), units.Count(batches.Batches(), "batch"), ms(one))
	}
	if evaluations > 0 {
		text += speaking(&p.Samples)
	}
	saves := v.saves(steps, from, evaluations, total)
	if rate := writeRate(v.folder()); rate > 0 {
		each := time.Duration(float64(v.checkpointBytes()) / rate * float64(time.Second))
		total += each * time.Duration(saves)
		text += fmt.Sprintf("\nsaving %s: up to %s of %s", units.Duration(each*time.Duration(saves)),
			units.Count(saves, "checkpoint"), units.Duration(each))
	}
	return text + fmt.Sprintf("\ntogether about %s, from %d steps: %s measures", units.Duration(total), rehearsed-1,
			hint.Command("bench")),
		nil
}

// speaking names what evaluations speak, whose time is not measured; "" for nothing.
func speaking(s *samples.List) string {
	var what []string
	if n := len(s.Clips); n > 0 {
		what = append(what, units.Count(n, "clip"))
	}
	if n := len(s.Sentences); n > 0 {
		what = append(what, units.Count(n, "sentence"))
	}
	if len(what) == 0 {
		return ""
	}
	often := "at each evaluation"
	if s.Optional && len(s.Sentences) == 0 {
		often += ", if that takes at most 10 % of the training time"
	}
	return fmt.Sprintf("\nnot counted: speaking %s %s; time_s in report.json shows its time",
		strings.Join(what, " and "), often)
}

// sizes are those of the inputs of a batch, by bucket: the time of a batch grows with them.
func (v cost) sizes() (list []float64) {
	for _, l := range v.draft.Slots.Layouts {
		list = append(list, float64(l.InputBytes))
	}
	return list
}

// stepTime is the mean time of the steps after the first, for the buckets of an epoch.
func (v cost) stepTime(sizes []float64) time.Duration {
	var took, of float64
	for _, w := range v.steps.done[1:] {
		took, of = took+float64(w.Time), of+sizes[w.Bucket]
	}
	return time.Duration(took / of * mean(v.draft.Data.Train.Plan, sizes))
}

// mean is the mean size of the batches of an epoch.
func mean(p *dataset.Plan, sizes []float64) float64 {
	epoch, sum := p.Epoch(0), 0.0
	for i := range p.Batches() {
		sum += sizes[epoch.Batch(i).Bucket]
	}
	return sum / float64(max(1, p.Batches()))
}

// evaluations counts those that follow after a step.
func evaluations(s *batch.Source, from int64) (n int64) {
	if s.Val == nil {
		return 0
	}
	total, every := s.Total(), cmp.Or(s.EvalEvery, s.StepsPerEpoch())
	n = total/every - from/every
	if total%every != 0 {
		n++ // the run's end always has one
	}
	return n
}

// saves counts the checkpoints of a run at most: by steps, by time, of the best evaluations, and the last.
func (v cost) saves(steps, from, evaluations int64, takes time.Duration) int64 {
	c := v.draft.Config
	n := int64(1)
	if c.CheckpointEvery > 0 {
		n += (from+steps)/c.CheckpointEvery - from/c.CheckpointEvery
	}
	if c.CheckpointMinutes > 0 {
		n += int64(takes.Minutes() / c.CheckpointMinutes)
	}
	if c.CheckpointEvery > 0 || c.CheckpointMinutes > 0 {
		n += evaluations
	}
	return n
}

// checkpointBytes is the size of a checkpoint: weights, moments, averages and state.
func (v cost) checkpointBytes() int {
	m := v.draft.Memory()
	return m.Weights + m.Moments + m.Average + m.State
}

// tryDisk says how much of the disk the checkpoints take. A disk that is too small ends no run, so it is a warning.
func (v cost) tryDisk(context.Context) (string, error) {
	c := v.draft.Config
	from := v.draft.Progress().Step
	kept, why := int64(c.KeepLast)+2, fmt.Sprintf("the last %d, the best, and one that is being written", c.KeepLast)
	if c.KeepLast == 0 {
		source := v.draft.Source()
		kept, why = v.saves(source.Total()-from, from, evaluations(source, from), 0), "--keep-last 0 keeps all"
	}
	need := kept * int64(v.checkpointBytes())
	text := fmt.Sprintf("%s of %s MiB: up to %s MiB (%s)", units.Count(kept, "checkpoint"),
		units.Mebibytes(float64(v.checkpointBytes())), units.Mebibytes(float64(need)), why)
	free, err := disk.FreeFor(v.folder())
	if err != nil {
		return text, nil
	}
	if free < need {
		v.log.Warn(fmt.Sprintf("the disk of %s has %s MiB for %s: lower --keep-last, or choose another --run-dir",
			v.folder(), units.Mebibytes(float64(free)), text))
	}
	return text + fmt.Sprintf(", %s MiB are free", units.Mebibytes(float64(free))), nil
}

// folder is the folder of the run, or that of new runs.
func (v cost) folder() string {
	c := v.draft.Config
	return cmp.Or(c.RunDir, c.Resume, "runs")
}

// writeRate measures how many bytes the disk of a folder writes in a second, with a file that has no name and that
// nothing remains of; 0 if that is not possible.
func writeRate(folder string) float64 {
	for !isFolder(folder) {
		above := filepath.Dir(folder)
		if above == folder {
			return 0
		}
		folder = above
	}
	fd, err := unix.Open(folder, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return 0
	}
	f := os.NewFile(uintptr(fd), folder)
	defer f.Close()
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * i >> 3) // not zeros, which some disks do not write
	}
	const blocks = 32
	began := time.Now()
	for range blocks {
		if _, err := f.Write(block); err != nil {
			return 0
		}
	}
	if err := f.Sync(); err != nil {
		return 0
	}
	return blocks * float64(len(block)) / time.Since(began).Seconds()
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// activations names the planned memory between the nodes of the training graph; "" if it cannot be planned.
func (v cost) activations() string {
	p := &v.draft.Plan
	bytes, err := memory.Activations(p.Bundle, p.Precision.Graph, p.Buckets.Sizes[len(p.Buckets.Sizes)-1],
		p.Config.BatchSize)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; activations in the largest bucket, by the plan of the graph as exported: %s MiB",
		units.Mebibytes(float64(bytes)))
}
