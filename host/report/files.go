package report

// The files of a run folder, beside its checkpoints and the configuration that it began with.
const (
	LogFile        = "log.jsonl" // its lock says that the folder has a writer
	MetricsFile    = "metrics.jsonl"
	EvalFile       = "eval.jsonl"
	QuarantineFile = "quarantine.jsonl"
	ExcludedFile   = "excluded.jsonl" // absent where no row is excluded
	ReportFile     = "report.json"
)
