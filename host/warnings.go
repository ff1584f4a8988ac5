package host

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/report"
)

// choices is what a run was told and what it found, as far as it can make the run poor.
type choices struct {
	card                    int64 // bytes of the GPU that trains; 0 on the CPU
	batchSize, accumulate   int
	bufferSize, bufferAsked int // ring slots: fewer than asked when --ring-memory holds no more
	slotSize                int // bytes of one
	ringMemory              string
	workers, cores          int
	batches                 int // of an epoch
	slots                   int // of the device
	data                    []findings
}

// findings is what was found in one data set.
type findings struct {
	name            string // "training" or "validation"
	clips, excluded int
	excludedSeconds float64
	unknown         []dataset.UnknownChar
	bytes           bool // unknown characters are spelled in bytes
	cacheError      error
}

// The least that is not poor.
const (
	goodBatch  = 8
	goodBuffer = 2
)

// poor returns a line for each choice that is known to make a run slow or its result worse, with what to do about it.
func poor(c choices) []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	suited, buffer, most := report.Suited(c.card)
	switch {
	case c.card > 0 && c.batchSize < goodBatch:
		say("--batch-size %d leaves most of the GPU idle (give it %d or more; %d suit a GPU of %d MB)", c.batchSize, goodBatch, suited, c.card/gpu.MB)
	case c.card > 0 && c.batchSize > most:
		say("--batch-size %d is much for a GPU of %d MB (give it %d, with --buffer-size %d)", c.batchSize, c.card/gpu.MB, most, buffer)
	case c.card == 0 && c.batchSize < goodBatch:
		say("--batch-size %d leaves the CPU's vector units idle (give it %d or more)", c.batchSize, goodBatch)
	}
	if c.bufferSize < c.bufferAsked {
		say("--buffer-size %d was lowered to %d to fit --ring-memory %s (raise that to %dMiB)",
			c.bufferAsked, c.bufferSize, c.ringMemory, (c.bufferAsked*c.slotSize+1<<20-1)>>20)
	}
	if c.bufferSize < goodBuffer {
		say("--buffer-size %d prepares a batch only when the one before is done (give it %d or more)", c.bufferSize, goodBuffer)
	}
	if c.workers > c.cores {
		say("--num-workers %d is more than the machine has cores (give it %d or fewer)", c.workers, c.cores)
	}
	if c.accumulate > c.batches {
		say("--accumulate %d is more than an epoch has batches, and steps do not cross epochs (give it %d or less)", c.accumulate, c.batches)
	}
	if c.batches < c.slots {
		say("an epoch has fewer batches (%d) than the device has slots (%d) (more data, or a smaller --batch-size)", c.batches, c.slots)
	}
	for _, d := range c.data {
		if d.excluded > 0 {
			say("%d of the %d %s clips are too long for the bundle and left out, %.1f s of sound (cut them; excluded.jsonl names them)",
				d.excluded, d.clips, d.name, d.excludedSeconds)
		}
		if len(d.unknown) > 0 && !d.bytes {
			say("the tokenizer does not know %s in the %s texts (%s)", characters(d.unknown), d.name, spelling(d.unknown))
		}
		if d.cacheError != nil {
			say("the next start reads every %s clip again: %v (is there room and leave to write in --cache-dir?)", d.name, d.cacheError)
		}
	}
	return lines
}

// maxCharacters is how many characters a line names.
const maxCharacters = 4

// byCount sorts characters, the most frequent first.
func byCount(found []dataset.UnknownChar) []dataset.UnknownChar {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b dataset.UnknownChar) int { return cmp.Compare(b.Count, a.Count) })
	return found
}

// characters counts characters and names the most frequent.
func characters(found []dataset.UnknownChar) string {
	found = byCount(found)
	total := 0
	var names []string
	for i, c := range found {
		total += c.Count
		if i < maxCharacters {
			names = append(names, fmt.Sprintf("%#U (%d, first in %s)", c.Char, c.Count, c.Place))
		}
	}
	if more := len(found) - maxCharacters; more > 0 {
		names = append(names, fmt.Sprintf("%d others", more))
	}
	return fmt.Sprintf("%d characters: %s", total, strings.Join(names, ", "))
}

// spelling says what to do about unknown characters.
func spelling(found []dataset.UnknownChar) string {
	var advice []string
	digits := false
	for _, c := range byCount(found) {
		switch {
		case c.Instead != 0 && len(advice) < maxCharacters:
			advice = append(advice, fmt.Sprintf("%#U instead of U+%04X", c.Instead, c.Char))
		case c.Instead == 0 && unicode.IsDigit(c.Char):
			digits = true
		}
	}
	if digits {
		advice = append(advice, "numbers in words")
	}
	if advice == nil {
		return "spell them with characters it knows"
	}
	return "write " + strings.Join(advice, ", ")
}

// maxReportedCharacters is how many characters of a list the report and the log name: a list in another script has not many
// more, and one that is no text at all has no end of them.
const maxReportedCharacters = 200

// unknownCharacters lists for the report what the tokenizer does not know, the most frequent first.
func (j *job) unknownCharacters() []report.UnknownCharacter {
	var out []report.UnknownCharacter
	for _, s := range j.data.Splits() {
		as := "unknown"
		if s.Index.ByteFallback {
			as = "bytes"
		}
		found := byCount(s.Index.Unknown)
		for _, c := range found[:min(len(found), maxReportedCharacters)] {
			out = append(out, report.UnknownCharacter{
				Split: s.Name, Char: string(c.Char), Code: fmt.Sprintf("U+%04X", c.Char), Count: c.Count, First: c.Place, As: as,
			})
		}
	}
	return out
}

// warn says what is poor about the run that is about to start, and writes down what was passed over.
func (j *job) warn() {
	c := j.cfg
	facts := choices{
		card: j.placement.Model.GPU.Memory, batchSize: c.BatchSize, accumulate: c.Accumulate,
		bufferSize: c.BufferSize, bufferAsked: j.asked, slotSize: j.slotSize(), ringMemory: c.RingMemory.String(),
		workers: c.NumWorkers, cores: runtime.NumCPU(), batches: j.data.Train.Plan.Batches(), slots: j.slots,
	}
	for _, s := range j.data.Splits() {
		facts.data = append(facts.data, findingsOf(s))
	}
	for _, line := range poor(facts) {
		j.log.Warn(line)
	}
	for _, e := range j.folders {
		if e.State != catalog.Verified {
			j.log.Info("plugin folder", "dir", e.Dir, "state", e.State, "reason", e.Reason)
		}
	}
	for _, c := range j.unknownCharacters() {
		j.log.Info("character not in the vocabulary", "split", c.Split, "char", c.Char, "code", c.Code, "count", c.Count, "first", c.First, "as", c.As)
	}
}

func findingsOf(s *batch.Split) findings {
	f := findings{name: s.Title(), bytes: s.Index.ByteFallback, clips: len(s.Index.Rows), unknown: s.Index.Unknown, cacheError: s.Index.CacheError}
	for _, e := range s.Plan.Excluded() {
		f.excluded++
		f.excludedSeconds += float64(s.Index.Rows[e.Row].Samples) / float64(s.Index.SampleRate)
	}
	return f
}
