package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// recorded are the lines of a run's metrics.jsonl by step: those of the steps that are made again.
type recorded struct {
	lines map[int64]line
	last  int64 // of the whole file
	// problem says which lines were left out because they are damaged; "" for none.
	problem string
}

// line has the keys of a line.
type line map[string]json.RawMessage

// number returns a value of a line: NaN for null.
func (l line) number(key string) (float64, bool) {
	var v *float64
	text, ok := l[key]
	if !ok || json.Unmarshal(text, &v) != nil {
		return 0, false
	}
	if v == nil {
		return math.NaN(), true
	}
	return *v, true
}

// readMetrics reads the lines after a step up to another. The run may be writing to the file: a last line without an
// end is none. A line that is damaged is left out: the other steps are compared without it.
func readMetrics(run string, after, upTo int64) (*recorded, error) {
	path := files.At(filepath.Join(run, rundir.MetricsFile))
	if _, err := path.Lstat(); errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Errorf("name the folder of a run that has trained", "%s: there is no %s", run,
			rundir.MetricsFile)
	}
	r := &recorded{lines: map[int64]line{}}
	r.problem = record.Lines(path, func(text []byte) error {
		var step struct{ Step int64 }
		if err := json.Unmarshal(text, &step); err != nil {
			return err
		}
		r.last = max(r.last, step.Step)
		if step.Step <= after || step.Step > upTo {
			return nil
		}
		l := line{}
		if err := json.Unmarshal(text, &l); err != nil {
			return err
		}
		r.lines[step.Step] = l
		return nil
	})
	if r.last == 0 && r.problem != "" {
		return nil, fmt.Errorf("%s: %s", run, r.problem)
	}
	return r, nil
}

// seconds is what the steps took in the run.
func (r *recorded) seconds() time.Duration {
	ms := 0.0
	for _, l := range r.lines {
		if v, ok := l.number("step_ms"); ok {
			ms += v
		}
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// difference is where a replay first differs from the run.
type difference struct {
	Step   int64  `json:"step"`
	Key    string `json:"key"`
	Run    string `json:"run"`
	Replay string `json:"replay"`
}

// advice says where to look.
func (d *difference) advice() string {
	switch d.Key {
	case "lr":
		return "the learning rate follows the settings: compare config.yaml and changes.jsonl of the run"
	case "samples", "frames", "bucket", "epoch":
		return "the batch differs: check whether the data or a plugin has changed"
	}
	return "the bits are the same only with the same program, bundle, data, plugins and kind of device"
}

// damaged reports whether the line of a step was left out.
func (r *recorded) damaged(step int64) bool { return r.problem != "" && r.lines[step] == nil }

// compare returns how a step that was made again differs from its line, nil if it does not.
func (r *recorded) compare(s *event.Step, metrics []string) *difference {
	l, ok := r.lines[s.Step]
	if !ok {
		return &difference{s.Step, "line of " + rundir.MetricsFile, "missing", "made"}
	}
	made := []struct {
		key   string
		value float64
	}{
		{"lr", s.LR}, {"samples", float64(len(s.Rows))}, {"frames", float64(s.Frames)}, {"bucket", float64(s.Bucket)},
		{"epoch", float64(s.Epoch)}, {"loss", s.Loss}, {"grad_norm", s.GradNorm},
	}
	for _, p := range s.Players[:max(0, len(s.Players)-1)] {
		made = append(made, []struct {
			key   string
			value float64
		}{{"lr." + p.Name, p.LR}, {"grad_norm." + p.Name, p.GradNorm}}...)
	}
	for i, name := range metrics {
		made = append(made, struct {
			key   string
			value float64
		}{name, s.Metrics[i]})
	}
	_, skipped := l["skipped"]
	if skipped != s.Skipped {
		return &difference{s.Step, "skipped", strconv.FormatBool(skipped), strconv.FormatBool(s.Skipped)}
	}
	for _, m := range made {
		was, ok := l.number(m.key)
		if skipped && (m.key == "loss" || slices.Contains(metrics, m.key)) {
			continue // the line has null, whatever they were
		}
		if finite := !math.IsInf(m.value, 0); !finite {
			m.value = math.NaN() // null stands for both
		}
		if ok && (was == m.value || math.IsNaN(was) && math.IsNaN(m.value)) {
			continue
		}
		return &difference{s.Step, m.key, text(was), text(m.value)}
	}
	return nil
}

func text(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// nearest finds the checkpoint to begin with: the newest intact one of at most a step, nil for none. It returns the
// oldest intact one as well, which knows how the run began.
func nearest(run string, most int64) (begin, oldest *checkpoint.Checkpoint, err error) {
	store := checkpoint.NewStore(run)
	steps, err := store.Steps()
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(steps)
	for _, step := range slices.Backward(steps) {
		if step > most || begin != nil {
			continue
		}
		begin = load(store, step)
	}
	for _, step := range steps {
		if oldest == nil {
			oldest = load(store, step)
		}
	}
	return begin, oldest, nil
}

// load returns an intact checkpoint, or nil: the run may be removing it.
func load(store *checkpoint.Store, step int64) *checkpoint.Checkpoint {
	c, err := checkpoint.Load(store.Path(step))
	if err != nil {
		return nil
	}
	return c
}
