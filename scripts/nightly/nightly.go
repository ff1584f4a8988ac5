// Package nightly says how large the random and repeated parts of tests are:
//
//	for seed := range nightly.Of(10, 400) { ... } // 10 in each run of the tests, 400 in make nightly
//
// The small size is fixed, so a test that fails does so again. It is the smallest that finds the faults of
// docs/planted-faults.md; what is drawn first is drawn in both sizes.
package nightly

import "os"

// Variable is the environment variable that asks for the full sizes.
const Variable = "XTTS_NIGHTLY"

// Full reports whether the full sizes are asked for.
func Full() bool { return os.Getenv(Variable) != "" }

// Of returns one of two sizes: the one of every run, or the one of make nightly.
func Of[N int | int64 | uint64](usual, full N) N {
	if Full() {
		return full
	}
	return usual
}
