// Package world assigns the rows of a batch to the ranks of a data-parallel run.
//
// A rank is one of the processes that train one model together. All ranks follow the same data plan and have the same
// weights. docs/data-plan.md specifies the rows of each rank.
package world

import "fmt"

// World is the rank of this process and the number of ranks. The zero value is a process that trains alone.
type World struct {
	// Rank counts from 0. Rank 0 writes the output of the run, such as checkpoints.
	Rank int
	// Size is the number of ranks; 0 means 1.
	Size int
	// Local counts the ranks on the same machine from 0, and LocalSize is their number; 0 if it is not known. They are
	// the launcher's.
	Local, LocalSize int
	// Machine is what the ranks themselves have found when they met.
	Machine Machine
}

// Machine is the ranks that can share memory with this one: they are on one machine, in one container, of one user.
type Machine struct {
	// Index counts them from 0, and Size is their number; 0 means 1.
	Index, Size int
	// First is the rank of the first of them.
	First int
}

// Alone reports whether there is no other rank on the machine.
func (m Machine) Alone() bool { return m.Size <= 1 }

// Near reports whether all ranks can share memory.
func (w World) Near() bool { return max(1, w.Machine.Size) == w.size() }

// Owns reports whether this rank owns what the ranks of the machine share.
func (m Machine) Owns() bool { return m.Index == 0 }

func (w World) size() int { return max(1, w.Size) }

// Check refuses a rank outside the world.
func (w World) Check() error {
	if w.Size < 0 || w.Rank < 0 || w.Rank >= w.size() {
		return fmt.Errorf("rank %d is not one of a world of %d", w.Rank, w.size())
	}
	return nil
}

// Alone reports whether there is no other rank.
func (w World) Alone() bool { return w.size() == 1 }

// Leads reports whether this rank writes the output of the run.
func (w World) Leads() bool { return w.Rank == 0 }

// BatchSize returns the rows of a batch of the plan if each rank computes rows.
func (w World) BatchSize(rows int) int { return rows * w.size() }

// Of returns how many of n batches of an evaluation a rank computes, empty ones included.
func (w World) Of(n int) int { return (n + w.size() - 1) / w.size() }

// Rows appends the rank's rows of a batch of the plan to dst: row i belongs to rank i mod Size. So the rows of all
// ranks have similar lengths, each rank's empty rows come last, and the numbers of empty rows differ by at most one.
func (w World) Rows(dst, rows []int32) []int32 {
	for i := w.Rank; i < len(rows); i += w.size() {
		dst = append(dst, rows[i])
	}
	return dst
}

// Micro numbers the rank's micro-batch among those of all ranks in a window, so that no two of them draw the same
// dropout.
func (w World) Micro(micro int) int { return micro*w.size() + w.Rank }
