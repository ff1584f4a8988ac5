// Package report is everything that a person or a program reads about a run: the files metrics.jsonl, eval.jsonl,
// quarantine.jsonl and report.json, the lines that show progress, and the table at the end. docs/report.md is the
// specification of the files.
//
// It is given plain values and starts nothing: no goroutine, no process, no clock. So a run is reported the same way
// whatever it ran on.
//
//	metrics, err := report.OpenMetrics(filepath.Join(dir, "metrics.jsonl"), names, step) // step 0: a new run
//	...
//	progress := report.Progress{Metrics: names, Total: 240, Every: 100}
//	collector := report.NewCollector(names, metrics.History())
//
//	for each window {
//		collector.Step(w, frames)
//		if err := metrics.Write(w, frames); err != nil { ... }
//		if line := progress.Window(w); line != "" { fmt.Fprintln(os.Stderr, line) }
//	}
//
//	r := collector.Build(report.Run{Bundle: "myxtts-nano", Device: "cpu", Wall: wall, Pipeline: p.Stats()})
//	if err := r.Write(filepath.Join(dir, "report.json")); err != nil { ... }
//	fmt.Print(r.Table(dir))
//
// Progress, Collector and Baselines belong to one goroutine, the trainer's; the writers of files say for themselves.
package report
