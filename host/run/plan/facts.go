package plan

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/xtts-host/xtts-host/host/train/resume"
)

// Facts are what all ranks of a run must have alike, by names for people: the run's identity, and the settings that
// decide which call follows which.
func (p *Plan) Facts() map[string]string {
	c := p.Config
	facts := resume.Values(p.Hashes)
	if dir := cmp.Or(c.ResumeOrStart, c.Resume, c.RunDir); dir != "" {
		facts["run folder"], _ = filepath.Abs(dir)
	}
	delete(facts, "batch-size") // that of all ranks follows from --batch-size
	for name, v := range map[string]any{
		"program": c.Version, "processor": runtime.GOARCH, "a GPU for the model": p.OnGPU(), "--epochs": c.Epochs,
		"--max-steps": c.MaxSteps, "--batch-size": c.BatchSize, "--eval-every": c.EvalEvery, "--ema": c.EMA,
		"--max-skipped": c.MaxSkipped, "--early-stop": c.EarlyStop, "--early-stop-delta": c.EarlyStopDelta,
		"--deterministic": c.Deterministic, "--verify-plugins": c.VerifyPlugins, "--trace-nan": c.TraceNaN,
		"--rank-sums": c.RankSums, "what is spoken": p.Samples.Hash(),
		"step of the checkpoint": p.Progress().Step,
	} {
		facts[name] = fmt.Sprint(v)
	}
	if p.Data.Val != nil {
		facts["validation data"] = p.Data.Val.Index.Hash()
	}
	return facts
}
