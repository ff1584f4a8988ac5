package bottleneck

import (
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// Finding is something that costs speed, or what limits it.
type Finding struct {
	// Cause is a phase of the pipeline, or one of Train, Buffer, "slots", "threads", "other" and "variation".
	Cause  string `json:"cause"`
	Advice string `json:"advice"`
	// Change is the setting that is to change, and its value; absent if none does.
	Change *Setting `json:"change,omitempty"`
	// Gain is the predicted gain in steps per second, as a share of those after the changes before it in the list;
	// absent if it is not known. AtMost says that it is an upper bound.
	Gain   *float64 `json:"gain,omitempty"`
	AtMost bool     `json:"at_most,omitempty"`
	// Uncertain says that other programs took so much of the cores that the gain depends on what they do; without a
	// gain, that it cannot be predicted because of them.
	Uncertain bool `json:"uncertain,omitempty"`
	// Major findings are bottlenecks: they cost at least 5 %, or a limit is exceeded.
	Major bool `json:"major"`
}

// Predicted writes the gain as a sentence; "" if it is not known.
func (f *Finding) Predicted() string {
	text := ""
	switch {
	case f.Gain == nil && f.Uncertain:
		return "Not predicted: other programs are busy on this machine."
	case f.Gain == nil:
		return ""
	case f.AtMost:
		text = "at most "
	}
	text = "Predicted: " + text + units.Percent(*f.Gain) + " more steps/s"
	if f.Uncertain {
		text += ", uncertain because other programs are busy on this machine"
	}
	return text + "."
}

// MajorGain is the gain from which a finding is major.
const MajorGain = 0.05

const (
	// Fewer steps than fewSteps may vary without a lasting cause: the first ones take longer.
	fewSteps = 20
	// nearly is the share of the slowest part from which another one is as slow, within the error of the measurement.
	nearly = 0.8
	// mostFound bounds the parts that are named one after the other.
	mostFound = 3
	// vectorBatch is the smallest batch that a run on the CPU starts with without a warning.
	vectorBatch = 8
	// maxSlots is the largest value of --slots.
	maxSlots = 8
	// longRing is the number of ring slots that even out the times of decoding and of stages: the default of
	// --buffer-size. The mean times, from which the other numbers follow, would be content with fewer.
	longRing = 50
)

// Diagnose returns what limits the run, and then what else costs speed. The first finding is what limits it.
func Diagnose(m *Measured) []Finding {
	d := diagnosis{Measured: m, setup: m.Setup, gained: 1}
	if m.stall() < StallLimit {
		d.say(Finding{Cause: Train, Advice: d.trainBound()})
	} else {
		d.waiting()
	}
	if share := m.Other / max(m.Step, 1e-9); share >= MajorGain {
		gain := share / (1 - share)
		d.say(Finding{
			Cause: "other", Gain: &gain, AtMost: true, Advice: fmt.Sprintf("%s of the time passes between the "+
				"steps. %s", units.Percent(share), Between),
		})
	}
	d.uneven()
	d.doubt()
	return d.found
}

// doubt says of gains that they depend on what other programs do, or cannot be predicted because of them.
func (d *diagnosis) doubt() {
	if d.Others < BusyLimit {
		return
	}
	for i := range d.found {
		f := &d.found[i]
		if f.Uncertain = f.Gain != nil; f.Uncertain && d.Others >= MostOthers {
			f.Gain, f.AtMost = nil, false
		}
	}
}

// Between is the advice for time between the steps. Its parts are not measured here, so it blames none of them.
const Between = "That holds checkpoints, lines and other files, and the trace of a step that is not finite. If it is " +
	"the checkpoints (saving in the report), raise --checkpoint-every, or put --run-dir on a faster disk."

// Waiting returns the findings for a run that waits for its batches.
func Waiting(m *Measured) []Finding {
	d := diagnosis{Measured: m, setup: m.Setup, gained: 1}
	d.waiting()
	return d.found
}

// diagnosis is a list of findings that is being made.
type diagnosis struct {
	*Measured
	setup  Setup   // with the changes of the findings so far
	gained float64 // by them: the speed as a multiple
	found  []Finding
}

func (d *diagnosis) say(f Finding) {
	f.Major = f.Major || f.Gain != nil && *f.Gain >= MajorGain
	d.found = append(d.found, f)
}

// timed reports whether there are times to predict with.
func (d *diagnosis) timed() bool { return d.Step > 0 && len(d.Phases) > 0 }

// more is the gain with these parts beyond that of the findings so far; nil without times.
func (d *diagnosis) more(list []part) *float64 {
	if !d.timed() {
		return nil
	}
	gain := max(0, (1+d.gain(list))/d.gained-1)
	return &gain
}

// waiting names the parts that training waits for, each with the change after which it does not, as long as a change
// leaves another one that is slower than training.
func (d *diagnosis) waiting() {
	limit, short := d.limit()
	for n := 0; n < mostFound; n++ {
		changed := d.wait(limit, short)
		if !changed || !d.timed() {
			break
		}
		d.gained = 1 + d.gain(d.parts(&d.setup))
		next := slowest(d.parts(&d.setup))
		if next.name == Train || next.name == Cores || next.name == limit || next.ms < 1.05*(d.Step-d.Wait) {
			break
		}
		limit = next.name
	}
	d.threads()
}

// limit returns the part that training waits for. short says that the run is too short to fill the ring.
func (d *diagnosis) limit() (name string, short bool) {
	short = !d.Queued && d.setup.BufferSize > 0 && d.Steps <= int64(d.setup.BufferSize) && d.setup.RingLimit == ""
	if !d.timed() {
		if !d.Queued {
			return Buffer, short
		}
		return d.Limit, short
	}
	list := without(without(d.parts(&d.setup), Train), Cores)
	slow := slowest(list)
	varies := !d.Queued || d.Limit == transfer || d.setup.shallow() && !d.serves(slow.name, d.Limit)
	if slow.ms < nearly*d.Step && varies {
		return slots, short // no part is slow in the mean
	}
	for _, p := range list {
		if d.Queued && (p.ms >= nearly*slow.ms || slow.ms < nearly*d.Step) && d.serves(p.name, d.Limit) {
			return d.Limit, false // batches queue for it
		}
	}
	return slow.name, short
}

// shallow reports whether the ring is known to have too few slots to even out times.
func (s *Setup) shallow() bool { return s.BufferSize > 0 && s.BufferSize < longRing }

// serves reports whether a phase has the workers of a part.
func (d *diagnosis) serves(part, phase string) bool {
	plugin := d.setup.PluginOf[phase]
	return part == phase || plugin != "" && plugin == d.setup.PluginOf[part]
}

// wait says that training waits for a part, and what to do. It reports whether a change was found, which it makes in
// setup.
func (d *diagnosis) wait(limit string, short bool) (changed bool) {
	s := &d.setup
	switch {
	case short:
		d.say(Finding{Cause: Buffer, Advice: fmt.Sprintf("No phase is busy all the time: the run of %s is too "+
			"short to say more. Its buffer of %s is not the limit.", units.Count(d.Steps, "step"),
			units.Count(s.BufferSize, "batch"))})
	case (limit == Buffer || limit == slots) && s.RingLimit != "":
		d.say(Finding{Cause: Buffer, Gain: d.more(without(d.parts(s), Buffer)), AtMost: true, Advice: fmt.Sprintf(
			"No phase is busy all the time: too few batches are in flight, but %s holds only %d ring slots. A smaller "+
				"--batch-size has smaller ones.", s.RingLimit, s.BufferSize)})
	case limit == Buffer:
		return d.raise(Buffer, "No phase is busy all the time: too few batches are in flight. Raise --buffer-size", ".",
			"buffer-size", s.BufferSize, 1<<20, func(n int) { s.BufferSize = n })
	case limit == slots:
		d.vary()
	case limit == decode:
		return d.decode()
	case limit == transfer:
		d.transfer()
	default:
		return d.stage(limit)
	}
	return false
}

// raise says that a part needs more of what a setting counts, and makes the change in setup. before comes before the
// number, which is the present one if there are no times.
func (d *diagnosis) raise(cause, before, after, flag string, n, most int, set func(int)) bool {
	if !d.timed() {
		d.say(Finding{Cause: cause, Advice: before + Now(n) + after})
		return true
	}
	to := n + 1
	for _, p := range d.parts(&d.setup) {
		if d.serves(p.name, cause) {
			to = d.enough(p.ms, n, most)
		}
	}
	if cause == Buffer {
		to = max(to, longRing)
	}
	set(to)
	d.say(Finding{
		Cause: cause, Advice: fmt.Sprintf("%s to %d%s%s", before, to, Now(n), after),
		Change: &Setting{flag, fmt.Sprint(to)}, Gain: d.more(d.parts(&d.setup)),
	})
	return true
}

// idle reports whether cores are known to be idle enough for more workers than cores to gain something.
func (d *diagnosis) idle(name string) bool {
	gain := d.more(without(d.parts(&d.setup), name))
	return d.Cores > 0 && gain != nil && *gain >= MajorGain
}

// workers is the largest number of workers to suggest.
func (d *diagnosis) workers(name string) int {
	if d.setup.Cores > 0 && !d.idle(name) {
		return max(1, d.setup.Cores)
	}
	return mostWorkers
}

func (d *diagnosis) decode() bool {
	s := &d.setup
	if s.allCores(s.NumWorkers) && !d.idle(decode) {
		d.say(Finding{Cause: decode, Gain: d.more(without(d.parts(s), decode)), AtMost: true, Advice: fmt.Sprintf(
			"Decoding limits the run and has a worker for each core (%d): store the clips as WAV with the bundle's "+
				"sample rate, which need no resampling, on a local disk.", s.Cores)})
		return false
	}
	why := "Decoding limits the run: raise --num-workers"
	if s.allCores(s.NumWorkers) {
		why = fmt.Sprintf("Decoding limits the run and waits for the disk, as the cores are busy for %s of the time: "+
			"raise --num-workers", units.Percent(d.Cores))
	}
	return d.raise(decode, why, ". Clips that have the bundle's sample rate need no resampling, and a local disk is "+
		"read faster than a shared one.", "num-workers", s.NumWorkers, d.workers(decode),
		func(n int) { s.NumWorkers = n })
}

func (d *diagnosis) transfer() {
	s := &d.setup
	f := Finding{Cause: transfer, Gain: d.more(without(d.parts(s), transfer)), AtMost: true}
	const smaller = "a smaller --batch-size transfers less per step."
	switch took := d.ms(transfer); {
	case d.timed() && took >= d.Step-d.Wait:
		f.Advice = fmt.Sprintf("Transfers limit the run: one takes %s, longer than training on it. More --slots do "+
			"not help: look for what else uses the link, and %s", units.Milliseconds(took), smaller)
	case s.Slots >= maxSlots:
		f.Advice = "Transfers limit the run: " + smaller
	default:
		f.Advice = fmt.Sprintf("Transfers limit the run: more --slots%s absorb single slow ones; when all are slow, %s",
			Now(s.Slots), smaller)
	}
	d.say(f)
}

// vary is the advice if each part is fast enough in the mean, but times vary. What a change gains is not known, so
// nothing follows from it.
func (d *diagnosis) vary() {
	s := &d.setup
	gain := max(0, d.Step/max(d.Step-d.Wait, 1e-9)/d.gained-1)
	f := Finding{Cause: slots, AtMost: true, Gain: &gain}
	const why = "Each part is fast enough in the mean, but their times vary"
	switch to := min(maxSlots, 2*max(2, s.Slots)); {
	case d.Limit != transfer && s.shallow():
		f.Cause, f.Change = Buffer, &Setting{"buffer-size", fmt.Sprint(longRing)}
		f.Advice = fmt.Sprintf("%s: raise --buffer-size to %d%s, so that slow batches are ready all the same.", why,
			longRing, Now(s.BufferSize))
	case s.Slots >= maxSlots:
		f.Advice = why + ". All --slots are in use."
	default:
		f.Change = &Setting{slots, fmt.Sprint(to)}
		f.Advice = fmt.Sprintf("%s: raise --slots to %d%s, which absorb single slow batches.", why, to, Now(s.Slots))
	}
	d.say(f)
}

func (d *diagnosis) stage(name string) bool {
	s := &d.setup
	plugin := s.PluginOf[name]
	workers := s.WorkersOf[plugin]
	switch {
	case plugin == "":
		d.say(Finding{Cause: name, Gain: d.more(without(d.parts(s), name)), AtMost: true, Advice: fmt.Sprintf(
			"Stage %s limits the run: give its plugin more processes with --plugin-workers ID=N.", name)})
		return false
	case s.allCores(workers) && !s.onGPU(plugin) && !d.idle(name):
		d.say(Finding{Cause: name, Gain: d.more(without(d.parts(s), name)), AtMost: true, Advice: fmt.Sprintf(
			"Stage %s limits the run, and its plugin has a process for each core (%d): a machine with more cores, or "+
				"a cheaper stage, is needed.", name, s.Cores)})
		return false
	}
	s.WorkersOf = maps.Clone(s.WorkersOf)
	to, f := max(1, workers)+1, Finding{Cause: name}
	if d.timed() {
		most := d.workers(name)
		if s.onGPU(plugin) {
			most = mostWorkers
		}
		for _, p := range d.parts(s) {
			if d.serves(p.name, name) {
				to = d.enough(p.ms, max(1, workers), most)
			}
		}
		if s.WorkersOf == nil {
			s.WorkersOf = map[string]int{}
		}
		s.WorkersOf[plugin] = to
		f.Gain = d.more(d.parts(s))
		f.Change = &Setting{"plugin-workers", fmt.Sprintf("%s=%d", plugin, to)}
	}
	why := ""
	if all := s.names(plugin, d.Phases); len(all) > 1 {
		why = fmt.Sprintf(", which also has the other stages of %s", plugin)
	}
	f.Advice = fmt.Sprintf("Stage %s limits the run: give its plugin%s more processes, --plugin-workers %s=%d%s.", name,
		why, plugin, to, Now(workers))
	d.say(f)
	return true
}

// threads is the advice for a run whose pipeline and training share the CPU.
func (d *diagnosis) threads() {
	s := &d.Setup
	const cause = "threads"
	switch {
	case s.OnCPU && s.Cores == 1:
		d.say(Finding{Cause: cause, Advice: "Training and the pipeline share one core: a machine with more cores is " +
			"needed."})
	case d.Cores > 0 && d.Cores < nearly: // neither waits for the other
	case s.OnCPU && s.Threads == 0:
		d.say(Finding{Cause: cause, Advice: "Training and the pipeline share the CPU: --threads N (now all cores) " +
			"leaves the other cores to the pipeline."})
	case s.OnCPU && s.Threads > 1:
		d.say(Finding{Cause: cause, Advice: fmt.Sprintf(
			"Training and the pipeline share the CPU: fewer --threads%s leave more of it to the pipeline.",
			Now(s.Threads))})
	}
}

// trainBound is the advice for a run that almost never waits for a batch.
func (d *diagnosis) trainBound() string {
	s := &d.setup
	text := fmt.Sprintf("The input pipeline is not the bottleneck: input stall %s.", units.Percent(d.stall()))
	switch {
	case s.OnCPU && s.Cores > 0 && !s.allCores(s.threads()):
		return text + fmt.Sprintf(" More --threads%s use more of the %d cores.", Now(s.Threads), s.Cores)
	case s.OnCPU && s.BatchSize >= vectorBatch:
		return text + " A GPU, or a machine with more cores, trains faster."
	}
	if _, _, most := Suited(s.Card); s.Card > 0 && s.BatchSize >= most {
		return text // a larger batch is expected not to fit
	}
	return text + " A larger --batch-size trains more frames per second while memory lasts" + s.recommendation() + "."
}

// uneven is the advice for steps whose times vary.
func (d *diagnosis) uneven() {
	f := Finding{Cause: "variation", Major: true}
	varies := fmt.Sprintf("Step time varies by %s", units.Percent(d.Variation))
	switch {
	case d.Variation <= MostVariation, d.BucketVariation < 0, d.Steps < fewSteps:
		return
	case d.BucketVariation <= MostVariation:
		f.Major = false // the steps differ in what they do
		f.Advice = fmt.Sprintf("%s because the buckets differ in length; within a bucket it is %s at most. "+
			"--enable-static-shapes makes all steps equal, at the price of padding.", varies,
			units.Percent(d.BucketVariation))
	case d.stall() < StallLimit && d.Setup.allCores(d.Setup.threads()): // so no batch comes late
		f.Advice = varies + ", also within a bucket, although batches are ready: the pipeline works on the cores " +
			"that train, other programs use this machine, or the clock rate changes."
	case d.stall() < StallLimit:
		f.Advice = varies + ", also within a bucket, although batches are ready: other programs use this machine, or " +
			"the clock rate changes."
	default:
		f.Advice = varies + ", also within a bucket: batches come late, or other programs use this machine."
	}
	d.say(f)
}

// Limit returns Train, or the phase of the pipeline that training waits for.
func Limit(m *Measured) string {
	if m.stall() < StallLimit {
		return Train
	}
	d := diagnosis{Measured: m, setup: m.Setup, gained: 1}
	if name, _ := d.limit(); name != Buffer && name != slots {
		return name
	}
	return m.Limit
}

// Texts are the advice of findings.
func Texts(list []Finding) (texts []string) {
	for _, f := range list {
		texts = append(texts, f.Advice)
	}
	return texts
}

// Major reports whether a run has a bottleneck.
func Major(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Major })
}
