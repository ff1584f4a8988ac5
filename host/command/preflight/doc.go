// Package preflight checks the settings of a run before it starts: it makes the run's plan, phase by phase, with the
// code that a run uses, and checks whether the run could write its files. It writes only to the cache folder.
//
//	blame := preflight.Blame{}
//	for _, c := range preflight.Settings(draft, set) {
//		fmt.Println(c.Name, c.Outcome(ctx, blame))
//	}
//
// A check is skipped unless all the checks that it depends on have passed. So one fault is reported once. The commands
// doctor and validate have these checks in common.
package preflight
