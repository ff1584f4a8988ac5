// Package report writes the files and the console output of a run: metrics.jsonl, eval.jsonl, quarantine.jsonl and
// report.json, the progress lines and the progress bar, and the table at the end. docs/report.md and docs/console.md
// are the specification.
//
// Metrics, Evaluations, Ledger, Collector and Console are sinks of package event. The package receives plain values,
// starts no process and does not link ONNX Runtime. Its only goroutines are those of a Bar, and
// that of a Console which looks at the progress of a run ([Console.Live]).
//
//	metrics, err := report.OpenMetrics(filepath.Join(dir, "metrics.jsonl"), names, step, wait) // step 0: a new run
//	...
//	collector := report.NewCollector(names, report.Before{Steps: metrics.History(), Recent: metrics.Recent()})
//	bus.RequireFile("metrics.jsonl", metrics)
//	bus.Require("report.json", collector)
//	bus.Offer("console", report.NewConsole(os.Stdout, os.Stderr, warn), warn)
//	... // the run publishes its events
//	err = bus.Flush()
//	r := &report.Report{Bundle: "myxtts-nano", Device: "cpu", Outcome: report.Done}
//	collector.Complete(r, report.Measured{Began: began, Wall: wall, Pipeline: p.Stats()})
//	if err := r.Write(dir); err != nil { ... }
//	fmt.Print(r.Table(dir))
//
// Only one goroutine may use a Progress, a Pace or Baselines. The comments of the other types describe their use.
package report
