package rundir

import (
	"path/filepath"
	"strconv"
	"strings"
)

// The files of a run folder. docs/report.md says what each has.
const (
	SettingsFile   = "config.yaml"
	LogFile        = "log.jsonl" // its lock says that the folder has a writer
	MetricsFile    = "metrics.jsonl"
	EvalFile       = "eval.jsonl"
	SpokenFile     = "spoken.jsonl" // what evaluations have spoken
	ProbesFile     = "probes.jsonl" // what the tensors of a model were at evaluations
	QuarantineFile = "quarantine.jsonl"
	ExcludedFile   = "excluded.jsonl"    // absent if no row is excluded
	ChangesFile    = "changes.jsonl"     // absent if --allow changed no setting
	FoldersFile    = "plugin-data.jsonl" // the files of data folders of plugins; absent if there are none
	LockFile       = "plugins.lock"      // which plugins the run uses
	ReportFile     = "report.json"
	TableFile      = "report.txt" // what is printed at the end
	PageFile       = "report.html"
	SpeakersFile   = "speakers.json" // the names that the model knows by number
)

// Its folders in addition to Checkpoints. The first two have a folder for each step with media.
const (
	SamplesFolder = "samples" // what evaluations have spoken
	RanksFolder   = "ranks"   // the lines of each rank but the first, by its number
	ProbesFolder  = "probes"  // pictures of tensors
	BoardFolder   = "tensorboard"
)

// RankFolder is the folder of a rank other than the first in that of the run.
func RankFolder(run string, rank int) string {
	return filepath.Join(run, RanksFolder, strconv.Itoa(rank))
}

// RunOfRank is the folder of the run of a RankFolder.
func RunOfRank(dir string) string { return filepath.Dir(filepath.Dir(dir)) }

// NaNFile is the file about a step whose loss or gradients are not finite.
func NaNFile(step int64) string { return "nan-" + Step(step) + ".json" }

// ParseNaNFile reads a file's name. Only what NaNFile writes is one.
func ParseNaNFile(name string) (int64, bool) {
	step, ok := ParseStep(strings.TrimSuffix(strings.TrimPrefix(name, "nan-"), ".json"))
	return step, ok && NaNFile(step) == name
}
