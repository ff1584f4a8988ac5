package cudac

import "cmp"

// Target is what programs may use of a GPU. The zero value stands for any from compute capability 8.0 on.
type Target struct {
	// Warpgroups says that they multiply matrices by warpgroups (wgmma): instructions of compute capability 9.0 alone.
	Warpgroups bool
	Multiprocessors
}

// Multiprocessors are those of a GPU, or of the part of it that the process may use. The zero value stands for those of
// a GPU that is not at hand.
type Multiprocessors struct {
	// Count is their number, 0 if it is not known.
	Count int
	// SharedMemory is what each has for all its blocks, in bytes, 0 if that is not known.
	SharedMemory int
	// Uncooperative says that the blocks of a launch cannot wait for each other: the driver does not make all of them
	// run at the same time.
	Uncooperative bool
}

// hopperCount is the number of multiprocessors of most cards of compute capability 9.0.
const hopperCount = 132

// TargetOf returns the target for a compute capability times ten.
func TargetOf(capability int, m Multiprocessors) Target {
	t := Target{Warpgroups: capability == 90, Multiprocessors: m}
	if t.Warpgroups {
		t.Count = cmp.Or(t.Count, hopperCount)
	}
	return t
}

// Limits of cooperative launches.
const (
	// mostCooperative is the largest number of blocks. With more of them, they wait longer for each other than they
	// save.
	mostCooperative = 128
	// fewCooperative is that for a GPU of which the number of multiprocessors is not known.
	fewCooperative = 32
	// A multiprocessor of 228 KiB of shared memory, as of compute capability 9.0, runs two blocks with halfShared bytes
	// each. Any other runs one with wholeShared.
	halfShared, wholeShared = 112 << 10, 96 << 10
	reservedShared          = 1 << 10 // by the driver, of each block
)

// cooperative returns how many blocks that wait for each other run at the same time, and the bytes of shared memory
// that each may have. The error says why there are none.
func (t Target) cooperative() (blocks, shared int, err error) {
	each, shared := 1, wholeShared
	if t.Warpgroups || t.SharedMemory >= 2*(halfShared+reservedShared) {
		each, shared = 2, halfShared
	}
	switch {
	case t.Uncooperative:
		return 0, 0, unsupported("the driver cannot make its blocks run at the same time on this GPU")
	case t.Count == 0:
		return fewCooperative, shared, nil
	}
	return min(mostCooperative, each*t.Count), shared, nil
}
