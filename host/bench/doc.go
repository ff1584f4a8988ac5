// Package bench keeps the figures of a benchmark of training, compares them, and words them for people.
//
// What is measured is a variant: where the model and the plugins are (a placement), and how batches come to the model (a
// feeding). A variant is measured once in each round, and figures are compared within a round, so that what else the machine
// does in an hour is in both sides of a comparison:
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
