package summary

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// choices are the settings and findings of a run that can make it slow or its result worse.
type choices struct {
	card                    int64 // bytes of the GPU that trains; 0 on the CPU
	batchSize, accumulate   int
	bufferSize, bufferAsked int    // ring slots: fewer than requested if they do not fit
	slotSize                int    // bytes of one
	ringLimit               string // what it fits
	workers, threads, cores int
	batches                 int     // of an epoch
	emptyRows               float64 // share of an epoch's frames in rows without a clip
	slots                   int     // of the device, as requested; 0 for auto
	data                    []findings
}

// findings are the findings in one data set.
type findings struct {
	name       string // "training" or "validation"
	place      func(line int) string
	clips      int
	used       *report.DataList
	advice     string // about clips that are too long
	shared     int    // clips that are in the training data, too
	rejected   []dataset.Rejected
	remedy     string // of the rejected lines
	unknown    []dataset.UnknownChar
	ignored    []dataset.IgnoredKey
	bytes      bool // unknown characters are spelled in bytes
	cacheError error
}

// defaultSlots cost little where an epoch has fewer batches.
const defaultSlots = 3

// The least values without a warning, and the largest share of the seconds that may be left out without one.
const (
	lostShare  = 0.01
	goodBatch  = 8
	goodBuffer = 2
	emptyShare = 0.5 // the largest without one
)

// badChoices returns a line for each setting or finding that makes a run slow or its result worse, with a fix.
func badChoices(c choices) []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	suited, buffer, most := bottleneck.Suited(c.card)
	good := min(goodBatch, c.data[0].clips)
	switch {
	case c.emptyRows > emptyShare:
		say("--batch-size %d is too large for %s: %.0f %% of the rows are empty; use a smaller one",
			c.batchSize, units.Count(c.data[0].used.Clips, "training clip"), 100*c.emptyRows)
	case c.card > 0 && c.batchSize < good:
		say("--batch-size %d leaves most of the GPU idle: use %d or more (%d suits a GPU of %d MB)", c.batchSize, good,
			suited, c.card/gpu.MB)
	case c.card > 0 && c.batchSize > most:
		say("--batch-size %d is large for a GPU of %d MB: use %d, with --buffer-size %d", c.batchSize, c.card/gpu.MB,
			most, buffer)
	case c.card == 0 && c.batchSize < good:
		say("--batch-size %d leaves the CPU's vector units idle: use %d or more", c.batchSize, good)
	}
	if c.bufferSize < c.bufferAsked {
		say("--buffer-size %d was lowered to %d to fit %s: it needs %d MiB",
			c.bufferAsked, c.bufferSize, c.ringLimit, (c.bufferAsked*c.slotSize+1<<20-1)>>20)
	}
	if c.bufferSize < goodBuffer {
		say("--buffer-size %d prepares a batch only after the previous one is done: use %d or more", c.bufferSize,
			goodBuffer)
	}
	if c.workers > c.cores {
		say("--num-workers %d is more than the machine has cores: use %d or fewer", c.workers, c.cores)
	}
	if c.threads > c.cores {
		say("--threads %d is more than the machine has cores: use %d or fewer, or 0", c.threads, c.cores)
	}
	if c.accumulate > c.batches {
		say("--accumulate %d is more than an epoch has batches, and steps do not cross epochs: use %d or less",
			c.accumulate, c.batches)
	}
	if c.slots > max(c.batches, defaultSlots) {
		say("--slots %d is more than an epoch has batches (%d): use fewer, or auto", c.slots, c.batches)
	}
	for i := range c.data {
		lines = append(lines, c.data[i].lines()...)
	}
	return lines
}

// lines returns a line for each finding.
func (d *findings) lines() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if n := len(d.rejected); n > 0 {
		first := d.rejected[0]
		are, them := "are", "them"
		if n == 1 {
			are, them = "is", "it"
		}
		say("%d of the %d %s clips cannot be used and %s left out, the first (%s) because: %s (quarantine.jsonl "+
			"names %s)",
			n, n+d.clips, d.name, are, d.place(first.Line), visible.Clauses(first.Reason, dataset.MaxReason), them)
		if d.remedy != "" {
			lines[len(lines)-1] += "; " + d.remedy
		}
	}
	if d.used.Lost() > lostShare {
		say("%s of the %s data is not used (%s): %s", d.used.LostShare(), d.name,
			strings.Join(d.used.LostLines(), "; "), d.advice)
	}
	if d.shared > 0 {
		say("%d of the %d validation clips are training clips, too: the validation loss does not show how well "+
			"the model does on clips that it has not seen",
			d.shared, d.clips)
	}
	if len(d.unknown) > 0 && !d.bytes {
		say("the tokenizer does not know %s in the %s texts (%s)", characters(d.unknown), d.name,
			spelling(d.unknown))
	}
	for _, k := range d.ignored {
		if k.Advice != "" {
			say("the key %q of %s of the %s list is ignored, first in %s (%s)", k.Key, units.Count(k.Lines, "line"),
				d.name, k.Place, k.Advice)
		}
	}
	if d.cacheError != nil {
		say("the index of the %s clips is not cached, so the next start reads them again: %v (check space and "+
			"permission to write in --cache-dir)",
			d.name, d.cacheError)
	}
	return lines
}

// few warns of evaluations on so few clips that their loss says little. The embedded sample is not the user's.
func few(p *plan.Plan) []string {
	if p.Config.TrainData == "" {
		return nil
	}
	if strings.HasPrefix(p.BestBy(), report.BySpoken) {
		n := len(p.Samples.Clips) + len(p.Samples.Sentences)
		if n >= report.FewEvaluated || n == 0 {
			return nil
		}
		return []string{fmt.Sprintf("%s: speak more with --spoken-clips, which takes longer",
			report.FewTextOf("the speech of only "+units.Count(n, "text")))}
	}
	n := p.Data.Usage.Validation.Clips
	if n >= report.FewEvaluated {
		return nil
	}
	share := p.Data.Share
	if p.Config.ValData != "" {
		share = 0
	}
	return []string{report.FewText(n) + ": " + report.FewAdvice(share, p.Data.Larger)}
}

// Warnings returns a line for each setting or finding that makes the run slow, its result worse, or its plugins unsafe.
func Warnings(p *plan.Plan) []string {
	m, ix := p.Bundle.Manifest, p.Data.Train.Index
	return slices.Concat(
		idle(p.Config, p.Placement.Model.OnCPU()),
		badSchedules(p.Source().Total(), p.Progress().Step > 0, p.Players, p.Schedules()),
		badChoices(choicesOf(p)), mixed(ix, m), unused(ix, m), unwritten(ix, p.Config.Normalize.Rules),
		badValidation(p), folders(p.Stages.Data), mute(p), formerExporter(p), stateOfRanks(p), lackOfRoom(p),
		exposed(p),
	)
}

// choicesOf returns what badChoices judges.
func choicesOf(p *plan.Plan) choices {
	c := p.Config
	all := choices{
		card: p.Placement.Model.GPU.Memory, batchSize: c.BatchSize, accumulate: c.Accumulate,
		bufferSize: c.BufferSize, bufferAsked: p.Ring.Asked, slotSize: p.Slots.Size(), ringLimit: p.Ring.Limit,
		workers: c.NumWorkers, threads: c.Threads, cores: runtime.NumCPU(), batches: p.Data.Train.Plan.Batches(),
		emptyRows: p.Data.Usage.Padding.EmptyRows, slots: int(c.Slots),
	}
	all.data = append(all.data, findingsOf(p.Data.Train, &p.Data.Usage.Train))
	if p.Data.Val != nil {
		all.data = append(all.data, findingsOf(p.Data.Val, p.Data.Usage.Validation))
		all.data[1].shared = p.Data.Usage.Shared
	}
	for i := range all.data {
		all.data[i].advice = lengthAdvice(p)
	}
	return all
}

// badValidation warns of validation data whose loss says little.
func badValidation(p *plan.Plan) []string {
	if p.Data.Val == nil {
		return nil
	}
	return append(few(p), unseen(p.Data.Train.Index, p.Data.Val.Index)...)
}

// mixed returns a line if clips have several languages that the bundle does not tell apart.
func mixed(ix *dataset.Index, b *manifest.Bundle) []string {
	_, numbered := ix.Numbered(b.Inputs)
	if len(ix.Languages) < 2 || numbered != nil || b.Tokenizer != nil && dataset.Tagged(b.Tokenizer.Prefix) {
		return nil
	}
	return []string{fmt.Sprintf(
		"the training clips have %d languages (%s), but %s takes none: it trains on them as one", len(ix.Languages),
		strings.Join(ix.Languages, ", "), b.Name)}
}

// idle returns a line for each setting that has no effect.
func idle(c *config.Config, onCPU bool) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if onCPU && c.Precision == config.TF32 {
		say("--precision tf32 has no effect on the CPU, which computes in f32")
	}
	if onCPU && c.CUDAGraphs == config.On {
		say("--cuda-graphs on has no effect on the CPU")
	}
	if onCPU && c.Fuse == config.On {
		say("--fuse on has no effect on the CPU")
	}
	if onCPU && c.Attention == config.BF16Attention {
		say("--attention bf16 has no effect on the CPU")
	}
	if onCPU && c.MemoryBaseline > 0 {
		say("--memory-baseline %s has no effect on the CPU: the memory of GPUs is watched", &c.MemoryBaseline)
	}
	return lines
}

// badSchedules returns a line for each problem of the players' learning rate schedules in a run of so many steps. A
// resumed run keeps its warm-up unless a change is allowed.
func badSchedules(steps int64, resumed bool, players []plan.Player, all []schedule.Schedule) (lines []string) {
	for i, s := range all {
		reached := ""
		switch {
		case steps < s.WarmupSteps:
			reached = fmt.Sprintf("longer than the run (%s), so the learning rate ends at %.4g of %g",
				units.Count(steps, "step"), s.LR(steps-1, 0), s.BaseLR)
		case steps == s.WarmupSteps && steps > 1:
			reached = fmt.Sprintf("as long as the run, so the learning rate reaches %g only in the last step", s.BaseLR)
		default:
			continue
		}
		advice := fmt.Sprintf("use a shorter one, such as --warmup-steps %d", steps/10)
		if resumed {
			advice = fmt.Sprintf("train longer, or with --warmup-steps %d --allow warmup-steps", steps/10)
		}
		lines = append(lines, fmt.Sprintf("the warm-up of %s%s is %s: %s", units.Count(s.WarmupSteps, "step"),
			report.OfPlayer(players[i].Name), reached, advice))
	}
	falls := func(s schedule.Schedule) bool { return s.Name != schedule.Constant }
	if last := all[len(all)-1]; last.MinLR > 0 && !slices.ContainsFunc(all, falls) {
		lines = append(lines, fmt.Sprintf("--min-lr %g has no effect with the schedule constant", last.MinLR))
	}
	return lines
}

func findingsOf(s *batch.Split, used *report.DataList) findings {
	return findings{
		name: s.Title(), place: s.Index.Place, bytes: s.Index.ByteFallback, clips: len(s.Index.Rows), used: used,
		rejected: s.Index.Rejected, remedy: s.Index.Remedy(s.Index.Rejected), unknown: s.Index.Unknown,
		ignored: s.Index.Ignored, cacheError: s.Index.CacheError,
	}
}

// lengthAdvice says what to do about clips that are too long.
func lengthAdvice(p *plan.Plan) string {
	if limits := p.Bundle.Manifest.Dynamic; limits != nil && !p.Config.Buckets.Auto() {
		return fmt.Sprintf("--buckets auto takes clips of up to %.2f s and %d tokens", p.Bundle.Manifest.LongestClip(),
			limits[manifest.SymbolText])
	}
	return "cut them into shorter clips, or train a bundle that takes longer ones with --graph"
}
