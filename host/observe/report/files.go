package report

// The files of a run folder, in addition to checkpoints and configuration.
const (
	LogFile        = "log.jsonl" // its lock says that the folder has a writer
	MetricsFile    = "metrics.jsonl"
	EvalFile       = "eval.jsonl"
	SpokenFile     = "spoken.jsonl" // what evaluations have spoken
	QuarantineFile = "quarantine.jsonl"
	ExcludedFile   = "excluded.jsonl" // absent if no row is excluded
	ChangesFile    = "changes.jsonl"  // absent if --allow changed no setting
	ReportFile     = "report.json"
	TableFile      = "report.txt"    // what is printed at the end
	SpeakersFile   = "speakers.json" // the names that the model knows by number
)
