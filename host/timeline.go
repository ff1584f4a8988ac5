package host

import (
	"time"

	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/trace"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// openTrace makes the file of the timeline, before anything takes time.
func (j *job) openTrace() (err error) {
	if j.trace, err = trace.Create(j.cfg.Trace); err != nil {
		return hint.Errorf("name a file that can be written", "--trace: %w", err)
	}
	return nil
}

// closeTrace ends it. A run does not fail for want of its picture.
func (j *job) closeTrace() {
	if err := j.trace.Close(); err != nil {
		j.log.Warn(err.Error())
	}
}

// draw has the parts of the run draw what they do on a timeline, if one was asked for.
func (r *run) draw(pipe pipeline.Config, loop *train.Loop) pipeline.Observer {
	what := trace.Run{Workers: pipe.Workers, DeviceSlots: pipe.DeviceSlots, Steps: r.cfg.TraceSteps, GPU: r.device.Timer != nil}
	for _, s := range pipe.Stages {
		what.Stages = append(what.Stages, s.Name)
	}
	for _, l := range r.layouts {
		what.Bytes = append(what.Bytes, l.InputBytes)
	}
	if r.timeline = trace.NewTimeline(r.trace, what); r.timeline == nil {
		return nil
	}
	loop.Spent = r.timeline.Trained
	if timer := r.device.Timer; timer != nil {
		timer.Spent = func(w train.Work, began, ended time.Time) {
			if w == train.Transferring {
				r.timeline.Copied(began, ended)
			} else {
				r.timeline.Computed(w.String(), began, ended)
			}
		}
	}
	return r.timeline
}
