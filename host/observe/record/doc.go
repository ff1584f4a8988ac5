// Package record reads what a run has written into its folder: while the run goes on, at its end, and after it was
// killed. The folder may come from someone else. So nothing in it is trusted: no link is followed, every file and every
// list has a limit, and what cannot be read is named in Run.Problems and left out.
//
//	r, err := record.Open("runs/first") // an error only if there is no run
//	fmt.Println(r.Status(), r.Steps.Count, r.Steps.Last, len(r.Problems))
//
// The memory does not depend on the length of the run: a Curve keeps the extremes of equal pieces of it, and Steps
// keeps sums of pieces, which are single steps in a run of up to 65,536 steps.
package record
