// Package report is everything that a person or a program reads about a run: the files metrics.jsonl, eval.jsonl,
// quarantine.jsonl and report.json, the lines and the bar that show progress, and the table at the end. docs/report.md
// is the specification of the files and the lines.
//
// Most of it are sinks of package event: Metrics, Evaluations, Ledger, Collector and Console. It is given plain values and starts no
// process, so a run is reported the same way whatever it ran on, and it links no ONNX Runtime. Its only goroutines draw a Bar.
//
//	metrics, err := report.OpenMetrics(filepath.Join(dir, "metrics.jsonl"), names, step) // step 0: a new run
//	...
//	collector := report.NewCollector(names, metrics.History())
//	bus.Require("metrics.jsonl", metrics)
//	bus.Require("report.json", collector)
//	bus.Offer("console", report.NewConsole(os.Stdout, os.Stderr, warn), warn)
//	... // the run publishes its events
//	err = bus.Flush()
//	r := collector.Build(report.Run{Bundle: "myxtts-nano", Device: "cpu", Wall: wall, Pipeline: p.Stats()})
//	if err := r.Write(filepath.Join(dir, "report.json")); err != nil { ... }
//	fmt.Print(r.Table(dir))
//
// Progress, Pace and Baselines belong to one goroutine; the others say for themselves.
package report
