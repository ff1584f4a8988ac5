package report

import (
	"fmt"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Verdict names the bottleneck and suggests what to change.
type Verdict struct {
	// Bottleneck is "train", the phase that the trainer waits for, or "unknown" after fewer than two steps.
	Bottleneck string   `json:"bottleneck"`
	Advice     []string `json:"advice"`
	// Findings are what costs speed, of which Advice has the texts, each with its predicted gain.
	Findings []bottleneck.Finding `json:"findings"`
	// Shares are where the time of a step goes, and Checks compares them with their limits.
	Shares bottleneck.Shares  `json:"shares"`
	Checks []bottleneck.Check `json:"checks"`
	// Parts are those of the model that predicts the gains.
	Parts []bottleneck.Part `json:"parts"`
	// Cores is the part of the time of all cores that the run took in training, with its plugins; 0 if unknown.
	Cores float64 `json:"cores"`
	// Others is the part that other programs took meanwhile; 0 if unknown, and with several ranks.
	Others float64 `json:"others"`
	// Diverged says that the run ended with a model that is ruined. The advice is then about that only.
	Diverged bool `json:"diverged,omitempty"`
	// SecondGPU is the gain from another GPU, for a run that trains on one; absent otherwise.
	SecondGPU *bottleneck.SecondGPU `json:"second_gpu,omitempty"`
}

// queuedShare: batches queue for a phase if they wait at least 1/queuedShare of its working time.
const queuedShare = time.Duration(10)

// limits has what the pipeline alone says of its bottleneck.
func limits(s pipeline.Stats, setup bottleneck.Setup) bottleneck.Measured {
	out := bottleneck.Measured{Limit: s.Bottleneck(), Setup: setup}
	for _, p := range s.Phases {
		if p.Name == out.Limit {
			out.Queued = p.Queue > p.Busy/queuedShare
		}
	}
	return out
}

// speedOf returns what the report and the pipeline say of the speed of a run.
func speedOf(r *Report, s pipeline.Stats, setup bottleneck.Setup) bottleneck.Measured {
	out := limits(s, setup)
	out.Steps, out.Step, out.Variation = r.StepMs.Steps, r.StepMs.Mean, r.StepMs.Variation
	out.Wait = r.InputStallRatio * out.Step
	out.Exposed = out.Wait * ratio(s.Exposed, s.Wait)
	batches := float64(max(1, r.Accumulation.MicroBatches)) // of a step
	for _, p := range s.Phases {
		out.Phases = append(out.Phases, bottleneck.Phase{
			Name: p.Name, Ms: batches * millis(p.Busy) / float64(max(1, s.Batches)), Parallel: p.Parallel,
		})
	}
	for _, p := range r.PhasesMs {
		if p.Name == "other" {
			out.Other = p.Ms
		}
	}
	out.BucketVariation = -1
	for _, d := range r.StepMs.ByBucket {
		if d.Steps > 1 {
			out.BucketVariation = max(out.BucketVariation, d.Variation)
		}
	}
	return out
}

// judge makes the verdict on a run of which so many of all steps were skipped.
func judge(m *bottleneck.Measured, skipped, all int64) Verdict {
	v := Verdict{Bottleneck: "unknown", Advice: []string{}, Findings: []bottleneck.Finding{}}
	if skipped > 0 {
		v.Advice = append(v.Advice, fmt.Sprintf(
			"Skipped: %d of %s, which taught nothing: loss or gradients were not finite, or there were no rows. Their "+
				"lines on the console name the clips: listen to them, or lower --lr.",
			skipped, units.Count(all, "step")))
	}
	v.Shares, v.Parts, v.Cores, v.Others = bottleneck.SharesOf(m), bottleneck.Parts(m), m.Cores, m.Others
	v.Checks = bottleneck.Checks(m)
	if m.Steps < 2 { // the first step is not typical
		v.Checks = []bottleneck.Check{}
		return v
	}
	v.Bottleneck, v.Findings = bottleneck.Limit(m), bottleneck.Diagnose(m)
	v.Advice = append(v.Advice, bottleneck.Texts(v.Findings)...)
	v.SecondGPU = bottleneck.Second(m)
	return v
}

// predicted is what an advice gains, to be written behind it.
func (v *Verdict) predicted(advice string) string {
	for i := range v.Findings {
		if text := v.Findings[i].Predicted(); v.Findings[i].Advice == advice && text != "" {
			return " " + text
		}
	}
	return ""
}
