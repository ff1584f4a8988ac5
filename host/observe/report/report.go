package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
)

// Version is the version of report.json.
const Version = 1

// Outcomes of a run other than an error: Done if it trained all of its steps and saved what it had to.
const (
	Done        = "done"
	Interrupted = "interrupted"
)

// Report is the content of report.json. docs/report.md specifies the figures. Times and speeds are of this process;
// steps, samples, frames and losses are of the whole run, including the part before a resume.
type Report struct {
	Version int    `json:"version"`
	Bundle  string `json:"bundle"`
	Device  string `json:"device"`
	// Precision is "f32", "tf32" or "bf16": the precision of the run's matrix products.
	Precision string `json:"precision"`
	// Graphs are the graphs that ran: files of the bundle, pruned to the requested outputs.
	Graphs []Graph `json:"graphs"`
	// Parameters describes the trained parameters.
	Parameters Parameters `json:"parameters"`
	// Versions are those of the libraries that computed the numbers, by name.
	Versions map[string]string `json:"versions"`
	// Outcome is Done, Interrupted, or the error that ended the run.
	Outcome string `json:"outcome"`
	// Hint says what to do after an interruption or an error; absent for none.
	Hint string `json:"hint,omitempty"`
	// ResumedAt is the step of the checkpoint that the run continued from; absent for 0.
	ResumedAt int64 `json:"resumed_at,omitempty"`
	// Changes are the settings that were changed during the run; absent without any.
	Changes []Change `json:"changes,omitempty"`

	Steps        int64   `json:"steps"`
	SkippedSteps int64   `json:"skipped_steps"`
	Samples      int64   `json:"samples"`
	Frames       int64   `json:"frames"`
	WallS        float64 `json:"wall_s"`
	// TimeS is absent in a report of an earlier version of the program.
	TimeS WallTime `json:"time_s"`

	Loss       Losses      `json:"loss"`
	Evaluation *Evaluation `json:"evaluation"` // null without one
	// EarlyStop is absent if the run did not end so.
	EarlyStop *EarlyStop `json:"early_stop,omitempty"`
	Baselines []Baseline `json:"baselines"`
	// Spoken is absent without sentences.
	Spoken *Spoken `json:"spoken,omitempty"`
	// Probed is absent without probes.
	Probed *Probed `json:"probed,omitempty"`

	StepsPerSecond      float64  `json:"steps_per_second"`
	FramesPerSecond     float64  `json:"frames_per_second"`
	InputStallRatio     float64  `json:"input_stall_ratio"`
	TransferHiddenRatio float64  `json:"transfer_hidden_ratio"`
	StepMs              StepTime `json:"step_ms"`
	// GradientsMs describes the forward and backward passes of the steps in StepMs, by the clock of the GPU if there is
	// one.
	GradientsMs Distribution `json:"gradients_ms"`
	PhasesMs    Phases       `json:"phases_ms"`
	// PhaseTimes describes the same times: of decode, the stages and transfer those of the batches that training got,
	// then of wait, train, optimizer and other those of the steps in StepMs.
	PhaseTimes []PhaseTime `json:"phase_times"`

	// Process says which rank of a run of several this report is of; absent otherwise, as Ranks, all of its processes.
	Process *Process `json:"process,omitempty"`
	Ranks   []Rank   `json:"ranks,omitempty"`

	Memory      []Memory      `json:"memory"`
	Utilization []Utilization `json:"utilization"`
	Plugins     []Plugin      `json:"plugins"`
	// Sandbox says what confined the plugins of this process.
	Sandbox sandbox.Report `json:"sandbox"`
	// NoDeadlines says that the run waited for its plugins without a limit (--debug).
	NoDeadlines bool `json:"no_deadlines,omitempty"`
	// Adaptive is absent without --adaptive.
	Adaptive *Adaptive `json:"adaptive,omitempty"`
	// Augmentations are those whose rows are chosen; absent without any.
	Augmentations []Augmentation `json:"augmentations,omitempty"`
	// FeatureCache is absent without one.
	FeatureCache *FeatureCache `json:"feature_cache,omitempty"`
	Quarantined  int           `json:"quarantined"`
	// UnsavedCheckpoints counts the checkpoints for which the disk had no space; the run continued without them.
	UnsavedCheckpoints int `json:"unsaved_checkpoints"`
	// GoodCheckpoint is the last one that a normal step has shown to be good; absent without one.
	GoodCheckpoint *GoodCheckpoint `json:"good_checkpoint,omitempty"`
	// Warnings are the first ones of the process that differ.
	Warnings []string `json:"warnings"`
	// Excluded counts the rows that fit in no bucket.
	Excluded          int                `json:"excluded"`
	Data              Data               `json:"data"`
	UnknownCharacters []UnknownCharacter `json:"unknown_characters"`
	Accumulation      Accumulation       `json:"accumulation"`
	Verdict           Verdict            `json:"verdict"`
}

// Change is a setting that a resumed run changed on purpose, after Step. changes.jsonl has one on each line.
type Change struct {
	Step int64  `json:"step"`
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Graph describes one graph of the bundle that ran.
type Graph struct {
	Use       string `json:"use"`              // Training or Evaluating
	Player    string `json:"player,omitempty"` // of one of several training graphs
	File      string `json:"file"`
	Precision string `json:"precision"`
	Nodes     int    `json:"nodes"`
	SHA256    string `json:"sha256"`
	// Fused is absent if the graph runs as exported. On a GPU, Unfused then says why.
	Fused   *Fused `json:"fused,omitempty"`
	Unfused string `json:"unfused,omitempty"`
	// OneThread is the node because of which --deterministic has one thread compute the graph.
	OneThread string `json:"one_thread,omitempty"`
}

// The uses of a graph.
const (
	Training   = "training"
	Evaluating = "evaluation"
)

// Losses are training losses of steps that were not skipped, null if there was none. Best is the lowest.
type Losses struct {
	First Float `json:"first"`
	Last  Float `json:"last"`
	Best  Float `json:"best"`
}

// Evaluation is the last evaluation of the run, and the step and loss of the best.
type Evaluation struct {
	Step    int64            `json:"step"`
	Loss    Float            `json:"loss"`
	Metrics map[string]Float `json:"metrics"`
	Samples int              `json:"samples"`
	Best    Best             `json:"best"`
}

// Best is the evaluation with the lowest loss, or the best by another measure, with its value.
type Best struct {
	Step  int64  `json:"step"`
	Loss  Float  `json:"loss"`
	By    string `json:"by,omitempty"`
	Value *Float `json:"value,omitempty"`
}

// GoodCheckpoint is a checkpoint to go back to: a step after it was normal. It is kept like the best one.
type GoodCheckpoint struct {
	Step   int64  `json:"step"`
	Folder string `json:"folder"` // in the run folder
}

// EarlyStop says why a run ended before its last step: so many evaluations in a row had no loss that is lower than Best
// by more than Delta.
type EarlyStop struct {
	Step        int64   `json:"step"`
	Evaluations int     `json:"evaluations"`
	Delta       float64 `json:"delta"`
	Best        *Float  `json:"best,omitempty"` // absent if no evaluation had a loss, and with By
	By          string  `json:"by,omitempty"`   // the measure, if it is not the loss
}

// EarlyStopOf is e as the report has it; nil stays nil.
func EarlyStopOf(e *event.EarlyStop) *EarlyStop {
	if e == nil {
		return nil
	}
	stop := &EarlyStop{Step: e.Step, Evaluations: e.Evaluations, Delta: e.Delta, By: e.By}
	if e.Best != nil && e.By == "" {
		best := Float(*e.Best)
		stop.Best = &best
	}
	return stop
}

func (e *EarlyStop) String() string {
	limit := "any validation loss"
	if e.By != "" {
		limit = "a better " + e.By
	}
	if e.Best != nil {
		limit = "a validation loss below " + units.Number(float64(*e.Best)-e.Delta)
	}
	return fmt.Sprintf("at step %d, after %s without %s (--early-stop)", e.Step,
		units.Count(e.Evaluations, "evaluation"), limit)
}

// StepTime describes the wall time of the steps of this process, evaluation excluded.
type StepTime struct {
	Distribution
	// FirstStepExcluded says that the first step of this process is not counted, because it includes the warm-up. It is
	// true for runs of more than ten steps.
	FirstStepExcluded bool                 `json:"first_step_excluded"`
	ByBucket          map[int]Distribution `json:"by_bucket"`
}

// Phase is the mean time of one phase in milliseconds.
type Phase struct {
	Name string
	Ms   float64
}

// Phases is a JSON object whose keys keep their order: decode, the stages and transfer per batch, which run in parallel
// with training; then wait, train, optimizer and other per step, which add up to it. On a GPU, gpu_train and
// gpu_optimizer per step and gpu_transfer per batch follow, by the clock of the GPU.
type Phases []Phase

// MarshalJSON writes the object.
func (p Phases) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, phase := range p {
		key, err := json.Marshal(phase.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(phase.Ms)
		if err != nil {
			return nil, err
		}
		b.WriteString([]string{"{", ","}[min(i, 1)])
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	if len(p) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads the object in the order of its keys.
func (p *Phases) UnmarshalJSON(data []byte) error {
	*p = nil
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("phases are no object"), err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		phase := Phase{Name: key.(string)} // the decoder accepts only a string as a key
		if err := dec.Decode(&phase.Ms); err != nil {
			return fmt.Errorf("phase %s: %w", phase.Name, err)
		}
		*p = append(*p, phase)
	}
	return nil
}

// Memory is the memory of one device. A value that was not limited or not measured is absent.
type Memory struct {
	Device           string `json:"device"`
	Role             string `json:"role"`
	LimitBytes       int64  `json:"limit_bytes,omitempty"`
	ArenaPeakBytes   int64  `json:"arena_peak_bytes,omitempty"`
	ProcessPeakBytes int64  `json:"process_peak_bytes,omitempty"`
	// MeanBytes and StdBytes are the mean of what the processes used of a GPU together, one sample a second, and its
	// standard deviation.
	MeanBytes int64 `json:"mean_bytes,omitempty"`
	StdBytes  int64 `json:"std_bytes,omitempty"`
}

// Utilization is the share of time that a device was busy, 1 for all of it.
type Utilization struct {
	Device string  `json:"device"`
	Role   string  `json:"role"`
	Mean   float64 `json:"mean"`
	// Std is the standard deviation of the Samples, one per second, and Mean is their mean. Without samples, Mean is
	// the mean over the run's whole wall time.
	Std     float64 `json:"std,omitempty"`
	Samples int     `json:"samples,omitempty"`
}

// Measured reports whether Mean was measured: that of the CPU needs no samples.
func (u *Utilization) Measured() bool { return u.Samples > 0 || u.Device == "cpu" }

// Plugin describes the work of one plugin's processes in the run.
type Plugin struct {
	ID      string `json:"id"`
	Workers int    `json:"workers"`
	// Ranks is the number of ranks whose batches the processes got: those of the machine.
	Ranks    int   `json:"ranks"`
	Restarts int   `json:"restarts"`
	Calls    int64 `json:"calls"`
	// Failed calls were answered with an error, Lost ones not at all: the process ended.
	Failed int64 `json:"failed"`
	Lost   int64 `json:"lost"`
	// PeakMemoryBytes is the largest memory of one process that was measured, one sample a second.
	PeakMemoryBytes int64 `json:"peak_memory_bytes"`
	// GrowthMB is the trend of the memory of one process, in MB per 1,000 calls; absent if there were too few calls.
	GrowthMB *float64 `json:"memory_mb_per_1000_calls,omitempty"`
	P50Ms    float64  `json:"p50_ms"`
	P99Ms    float64  `json:"p99_ms"`
	// CPUS is the time of all cores that the processes took since they accept calls, in seconds.
	CPUS float64 `json:"cpu_s"`
}

// Accumulation describes how the gradients of micro-batches are combined: mode "exact", "mean" or "weighted".
type Accumulation struct {
	Mode         string `json:"mode"`
	MicroBatches int    `json:"micro_batches"`
}

// UnknownCharacter is a character of the texts that is not in the tokenizer's vocabulary.
type UnknownCharacter struct {
	Split string `json:"split"`
	Char  string `json:"char"`
	Code  string `json:"code"` // as "U+064A"
	Count int    `json:"count"`
	First string `json:"first"` // list and line of the first, as "metadata.csv:12"
	// As is the input of the model for it: "unknown" is the one token of all such characters, "bytes" its bytes.
	As string `json:"as"`
}

// Float is a float64 that may be NaN or infinite: JSON null stands for both, and is read as NaN.
type Float float64

// MarshalJSON writes a number or null.
func (f Float) MarshalJSON() ([]byte, error) { return appendFloat(nil, float64(f)), nil }

// UnmarshalJSON reads a number or null.
func (f *Float) UnmarshalJSON(data []byte) error {
	v := math.NaN()
	if string(data) != "null" {
		if err := json.Unmarshal(data, &v); err != nil {
			return err
		}
	}
	*f = Float(v)
	return nil
}

// Write writes the files of the report to a run's folder: the figures, and the table. It replaces each completely or
// not at all.
func (r *Report) Write(folder string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write %s: %w", rundir.ReportFile, err)
	}
	err := disk.Replace(filepath.Join(folder, rundir.TableFile), []byte(r.Table(folder)))
	if err == nil { // the figures come last: they say that the run is complete
		err = disk.Replace(filepath.Join(folder, rundir.ReportFile), visible.JSON(b.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err) // a *fs.PathError names the file
	}
	return nil
}

// Read reads a report.
func Read(path string) (*Report, error) {
	data, err := files.At(path).Read(maxReport)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read report: %s: %w", path, err)
	}
	return r, nil
}

// maxReport bounds a report, in bytes. One has some 10 KB.
const maxReport = 16 << 20
