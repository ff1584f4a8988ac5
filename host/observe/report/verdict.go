package report

import (
	"fmt"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// The limits of the verdict. Below stallLimit, the trainer almost never waits for a batch; a variation above
// variationLimit causes a warning.
const (
	stallLimit     = 0.02
	variationLimit = 0.30
	// Fewer steps than fewSteps may vary without a lasting cause: the first ones take longer.
	fewSteps = 20
)

// Verdict names the bottleneck and suggests what to change.
type Verdict struct {
	// Bottleneck is "train", the phase that the trainer waits for, or "unknown" after fewer than two steps.
	Bottleneck string   `json:"bottleneck"`
	Advice     []string `json:"advice"`
	// Diverged says that the run ended with a model that is ruined. The advice is then about that only.
	Diverged bool `json:"diverged,omitempty"`
	// SecondGPU is the gain from another GPU, for a run that trains on one; absent otherwise.
	SecondGPU *SecondGPU `json:"second_gpu,omitempty"`
}

// Setup has the settings that the advice may suggest to change. A count of 0 is unknown and not mentioned.
type Setup struct {
	// OnCPU says that training and the pipeline share the cores. Threads 0 means all of them.
	OnCPU bool
	// Card is the memory of the GPU that trains, in bytes; 0 on the CPU.
	Card int64
	// BatchSize is compared with the recommendation for the card.
	BatchSize                              int
	Threads, NumWorkers, BufferSize, Slots int
	// Cores is how many the process may use. RingLimit names what holds no more ring slots, if they are fewer than
	// requested.
	Cores     int
	RingLimit string
	// PluginOf gives the plugin that serves a stage instance, WorkersOf the number of a plugin's processes.
	PluginOf  map[string]string
	WorkersOf map[string]int
	// UsesGPU contains the plugins that can use a GPU. DataGPU says that they have a GPU of their own, SharedGPU that
	// they use the GPU that trains; without both they run on the CPU.
	UsesGPU            map[string]bool
	DataGPU, SharedGPU bool
}

// symptoms are the measurements from which a verdict is derived.
type symptoms struct {
	steps           int64
	skipped, all    int64 // of the whole run
	stall           float64
	variation       float64
	bucketVariation float64 // the largest within one bucket; -1 if no bucket had two steps
	bottleneck      string  // of the pipeline
	queued          bool    // batches queue for it
	plugin          string  // the plugin of the bottleneck; "" if it is no stage
	setup           Setup
}

// limits finds the bottleneck of a pipeline.
func limits(s pipeline.Stats, setup Setup) symptoms {
	out := symptoms{bottleneck: s.Bottleneck(), setup: setup}
	for _, p := range s.Phases {
		if p.Name == out.bottleneck {
			out.queued = p.Queue > p.Busy/queuedShare
		}
	}
	out.plugin = setup.PluginOf[out.bottleneck]
	return out
}

func diagnose(r *Report, s pipeline.Stats, setup Setup) symptoms {
	out := limits(s, setup)
	out.skipped, out.all = r.SkippedSteps, r.Steps
	out.steps, out.stall, out.variation = r.StepMs.Steps, r.InputStallRatio, r.StepMs.Variation
	out.bucketVariation = -1
	for _, d := range r.StepMs.ByBucket {
		if d.Steps > 1 {
			out.bucketVariation = max(out.bucketVariation, d.Variation)
		}
	}
	return out
}

// queuedShare: batches queue for a phase if they wait at least 1/queuedShare of its working time.
const queuedShare = time.Duration(10)

// judge turns symptoms into a verdict.
func judge(s symptoms) Verdict {
	v := Verdict{Bottleneck: s.bottleneck, Advice: []string{}}
	say := func(format string, args ...any) { v.Advice = append(v.Advice, fmt.Sprintf(format, args...)) }
	if s.skipped > 0 {
		say("Skipped: %d of %s, which taught nothing: loss or gradients were not finite, or there were no rows. Their "+
			"lines on the console name the clips: listen to them, or lower --lr.",
			s.skipped, units.Count(s.all, "step"))
	}
	if s.steps < 2 { // the first step is not typical
		v.Bottleneck = "unknown"
		return v
	}
	if s.stall < stallLimit {
		v.Bottleneck = "train"
		say("%s", s.trainBound())
	} else {
		s.advise(say)
	}
	switch {
	case s.variation <= variationLimit, s.bucketVariation < 0, s.steps < fewSteps:
	case s.bucketVariation <= variationLimit:
		say("Step time varies by %s because the buckets differ in length; within a bucket it is %s at most. "+
			"--enable-static-shapes makes all steps equal, at the price of padding.",
			units.Percent(s.variation), units.Percent(s.bucketVariation))
	case s.stall < stallLimit && s.setup.allCores(s.setup.threads()): // so no batch comes late
		say("Step time varies by %s, also within a bucket, although batches are ready: the pipeline works on the "+
			"cores that train, other programs use this machine, or the clock rate changes.",
			units.Percent(s.variation))
	case s.stall < stallLimit:
		say("Step time varies by %s, also within a bucket, although batches are ready: other programs use this "+
			"machine, or the clock rate changes.",
			units.Percent(s.variation))
	default:
		say("Step time varies by %s, also within a bucket: batches come late, or other programs use this machine.",
			units.Percent(s.variation))
	}
	return v
}

// trainBound is the advice for a run that almost never waits for a batch.
func (s symptoms) trainBound() string {
	text := fmt.Sprintf("The input pipeline is not the bottleneck: input stall %s.", units.Percent(s.stall))
	switch {
	case s.setup.OnCPU && s.setup.Cores > 0 && !s.setup.allCores(s.setup.threads()):
		return text + fmt.Sprintf(" More --threads%s use more of the %d cores.", now(s.setup.Threads), s.setup.Cores)
	case s.setup.OnCPU && s.setup.BatchSize >= vectorBatch:
		return text + " A GPU, or a machine with more cores, trains faster."
	}
	if _, _, most := Suited(s.setup.Card); s.setup.Card > 0 && s.setup.BatchSize >= most {
		return text // a larger batch is expected not to fit
	}
	return text + " A larger --batch-size trains more frames per second while memory lasts" + s.setup.recommendation() +
		"."
}

// advise suggests how to reduce the input stall. It suggests nothing that the machine does not have.
func (s symptoms) advise(say func(format string, args ...any)) {
	setup := s.setup
	workers := setup.WorkersOf[s.plugin]
	switch {
	case !s.queued && setup.BufferSize > 0 && s.steps <= int64(setup.BufferSize) && setup.RingLimit == "":
		say("No phase is busy all the time: the run of %d steps is too short to say more. Its buffer of %d batches is "+
			"not the limit.",
			s.steps, setup.BufferSize)
	case !s.queued && setup.RingLimit != "":
		say("No phase is busy all the time: too few batches are in flight, but %s holds only %d ring slots. A smaller "+
			"--batch-size has smaller ones.",
			setup.RingLimit, setup.BufferSize)
	case !s.queued:
		say("No phase is busy all the time: too few batches are in flight. Raise --buffer-size%s.",
			now(setup.BufferSize))
	case s.bottleneck == "decode" && setup.allCores(setup.NumWorkers):
		say("Decoding limits the run and has a worker for each core (%d): store the clips as WAV with the bundle's "+
			"sample rate, which need no resampling, on a local disk.",
			setup.Cores)
	case s.bottleneck == "decode":
		say("Decoding limits the run: raise --num-workers%s. Clips that have the bundle's sample rate need no "+
			"resampling, and a local disk is read faster than a shared one.",
			now(setup.NumWorkers))
	case s.bottleneck == "transfer" && setup.Slots >= maxSlots:
		say("Transfers limit the run: a smaller --batch-size transfers less per step.")
	case s.bottleneck == "transfer":
		say("Transfers limit the run: more --slots%s absorb single slow ones; when all are slow, a smaller "+
			"--batch-size transfers less per step.",
			now(setup.Slots))
	case s.plugin != "" && setup.allCores(workers) && !setup.onGPU(s.plugin):
		say("Stage %s limits the run, and its plugin has a process for each core (%d): a machine with more cores, or "+
			"a cheaper stage, is needed.",
			s.bottleneck, setup.Cores)
	case s.plugin != "":
		say("Stage %s limits the run: give its plugin more processes, --plugin-workers %s=%d%s.",
			s.bottleneck, s.plugin, max(1, workers)+1, now(workers))
	default:
		say("Stage %s limits the run: give its plugin more processes with --plugin-workers ID=N.", s.bottleneck)
	}
	switch {
	case setup.OnCPU && setup.Cores == 1:
		say("Training and the pipeline share one core: a machine with more cores is needed.")
	case setup.OnCPU && setup.Threads == 0:
		say("Training and the pipeline share the CPU: --threads N (now all cores) leaves the other cores to the " +
			"pipeline.")
	case setup.OnCPU && setup.Threads > 1:
		say("Training and the pipeline share the CPU: fewer --threads%s leave more of it to the pipeline.",
			now(setup.Threads))
	}
}

// vectorBatch is the smallest batch that a run on the CPU starts with without a warning.
const vectorBatch = 8

// maxSlots is the largest value of --slots.
const maxSlots = 8

// allCores reports whether n workers have all cores.
func (s Setup) allCores(n int) bool { return s.Cores > 0 && n >= s.Cores }

// threads is the number of threads that train on the CPU; 0 on a GPU.
func (s Setup) threads() int {
	switch {
	case !s.OnCPU:
		return 0
	case s.Threads == 0:
		return s.Cores
	}
	return s.Threads
}

// onGPU reports whether a plugin computes on a GPU.
func (s Setup) onGPU(plugin string) bool { return s.UsesGPU[plugin] && (s.DataGPU || s.SharedGPU) }

// now writes the present value of a setting.
func now(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (now %d)", n)
}
