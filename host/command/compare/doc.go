// Package compare implements the command `compare`: it compares runs with a baseline, by speed, losses, memory and
// speech, and says where they are not comparable. It reads run folders as package record does, which may be a
// stranger's.
//
// The interval of a speed-up counts what step times tell: they are correlated, so it comes from the means of long
// blocks of steps (interval.go). It does not count how much two runs of the same settings differ.
package compare
