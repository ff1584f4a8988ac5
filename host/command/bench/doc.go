// Package bench collects the figures of a training benchmark, compares them, and prints them as tables.
//
// A variant is measured: where the model and the plugins run (the placement), and how batches reach the model (the
// input mode). A variant is measured once per round, and figures are compared within a round, so other load on the
// machine affects both sides of a comparison:
//
//	r := bench.Result{Version: bench.Version, Placement: bench.TwoGPUs, ...}
//	for round := range rounds {
//		for _, v := range bench.InOrder(bench.Variants(bench.TwoGPUs), round) {
//			r.Add(16, v, round, bench.Of(train(v))) // a report.Report
//		}
//	}
//	r.Compare()
//	fmt.Print(r.Table(16), r.GoalTable())
package bench
