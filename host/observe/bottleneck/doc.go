// Package bottleneck finds what limits the speed of a run, from the times that were measured in it, and predicts what a
// change of settings gains:
//
//	for _, f := range bottleneck.Diagnose(&measured) {
//		fmt.Println(f.Advice)
//	}
//
// The parts of a run work at the same time, so a step takes as long as the slowest part: the time of a stage divided by
// the number of its workers, or that of training (docs/profile.md).
package bottleneck
