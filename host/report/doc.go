// Package report is everything that a person or a program reads about a run: the files metrics.jsonl, eval.jsonl,
// quarantine.jsonl and report.json, the lines and the bar that show progress, and the table at the end. docs/report.md
// is the specification of the files and the lines.
//
// It is given plain values and starts no process, so a run is reported the same way whatever it ran on. Its only goroutines
// draw a Bar and write the lines of Metrics, for which the trainer does not wait.
//
//	metrics, err := report.OpenMetrics(filepath.Join(dir, "metrics.jsonl"), names, step) // step 0: a new run
//	...
//	progress := report.Progress{Metrics: names, Total: 240, Every: 100}
//	collector := report.NewCollector(names, metrics.History())
//
//	for each window {
//		collector.Step(w)
//		if err := metrics.Write(w); err != nil { ... }
//		if line := progress.Window(w); line != "" { fmt.Fprintln(os.Stderr, line) }
//	}
//
//	if err := metrics.Close(); err != nil { ... } // it writes the last lines
//	r := collector.Build(report.Run{Bundle: "myxtts-nano", Device: "cpu", Wall: wall, Pipeline: p.Stats()})
//	if err := r.Write(filepath.Join(dir, "report.json")); err != nil { ... }
//	fmt.Print(r.Table(dir))
//
// On a terminal everything is printed through a Bar, which keeps it above itself:
//
//	bar := report.NewBar(os.Stdout)
//	bar.Start(progress.Status())
//	defer bar.Close()
//	... fmt.Fprintln(bar, line); bar.Show(progress.Status())
//
// Progress, Pace, Collector and Baselines belong to one goroutine, the trainer's; the others say for themselves.
package report
