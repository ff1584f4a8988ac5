package batch

import (
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// ranges holds the range of each tensor: the smallest max_abs that a port declares which is bound to it. So what a stage of a
// stranger writes is held to what the next stage expects.
type ranges map[string]float32

func rangesOf(instances []catalog.Instance) ranges {
	r := ranges{}
	take := func(ports []manifest.TensorSpec, bound map[string]string) {
		for _, p := range ports {
			name, limit := bound[p.Name], float32(p.MaxAbs)
			if had, ok := r[name]; limit > 0 && (!ok || limit < had) {
				r[name] = limit
			}
		}
	}
	for _, in := range instances {
		take(in.Stage.Inputs, in.Inputs)
		take(in.Stage.Outputs, in.Outputs)
	}
	return r
}

// checkRange looks for values that are finite and still cannot be right: beyond the tensor's range, or zeros in all rows. Each
// tensor is reported once; with Config.Strict the first report ends the run.
func (s *stageRunner) checkRange(b *pipeline.Batch) error {
	slot := s.ring.Slot(b.Slot)
	for _, port := range s.instance.Stage.Outputs {
		t, ok := s.layouts[b.Bucket].Find(s.instance.Outputs[port.Name])
		if !ok || t.DType != manifest.F32 {
			continue
		}
		why := ""
		if limit, ok := s.ranges[t.Name]; ok {
			if row := t.Beyond(slot, limit); row >= 0 {
				why = fmt.Sprintf("row %d of %s has values beyond its range of %g", row, t.Name, limit)
			}
		}
		if why == "" && !port.MayBeZero && allZero(t, slot, b.Rows) {
			why = fmt.Sprintf("all rows of %s are zero", t.Name)
		}
		if why == "" {
			continue
		}
		why = fmt.Sprintf("%s (%s)", why, s.describe(b))
		if s.strict {
			return supervise.Violation(s.plugin, errors.New(why))
		}
		if _, known := s.reported.LoadOrStore(t.Name, true); !known {
			s.log.Warn(fmt.Sprintf("plugin %s: stage %s: %s; further batches are not reported; --on-range stop ends the run", s.plugin, s.instance.Name, why))
		}
	}
	return nil
}

// allZero reports whether a batch has rows and the tensor is zero in all of them.
func allZero(t ring.Tensor, slot []byte, rows []int32) bool {
	any := false
	for i, row := range rows {
		if row < 0 {
			continue
		}
		if any = true; !t.Zero(slot, i) {
			return false
		}
	}
	return any
}
