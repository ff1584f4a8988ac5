// Package retain chooses the evaluations whose speech and pictures stay: the newest ones, and the best one.
package retain

import "slices"

// Old returns those of some steps, in order, that are neither among the last keep ones nor the best. 0 keeps all.
func Old(steps []int64, keep int, best int64) (old []int64) {
	if keep <= 0 || len(steps) <= keep {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(steps[:len(steps)-keep]), func(step int64) bool { return step == best })
}
