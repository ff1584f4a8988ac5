package host

import (
	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/record"
)

// record describes the job for people and reports, once it is planned.
func (j *job) record() *record.Plan {
	return &record.Plan{
		Config: j.cfg, Manifest: j.bundle.Manifest, Parameters: j.trained(), Data: j.data, Pipeline: j.pipeline, Placement: j.placement, Precision: j.precision,
		Buckets: len(j.buckets), Threads: j.threads(), RingAsked: j.asked, SlotBytes: j.slotSize(), DeviceSlots: j.slots, Prefetch: j.prefetch,
	}
}

// warn says what is poor about the run that is about to start, and logs what was passed over.
func (j *job) warn(p *record.Plan) {
	for _, line := range p.Warnings() {
		j.log.Warn(line)
	}
	for _, e := range j.folders {
		if e.State != catalog.Verified {
			j.log.Info("plugin folder", "dir", e.Dir, "state", e.State, "reason", e.Reason)
		}
	}
	for _, c := range p.UnknownCharacters() {
		j.log.Info("character not in the vocabulary", "split", c.Split, "char", c.Char, "code", c.Code, "count", c.Count, "first", c.First, "as", c.As)
	}
}
