package gpu

import (
	"fmt"
	"time"
)

// Watcher reports faults. One goroutine reads Faults until Close closes it. Close is idempotent.
type Watcher interface {
	Faults() <-chan Fault
	Close() error
}

// Fault is a GPU error that the driver reports, called XID in the kernel's log.
type Fault struct {
	UUID string
	XID  uint64
	At   time.Time
}

// faults has the meanings of the most frequent numbers in training, and whether the card is at fault; otherwise a
// program is, ours or another one on that card.
//
// Source: NVIDIA, XID Errors, https://docs.nvidia.com/deploy/xid-errors/
var faults = map[uint64]struct {
	text     string
	hardware bool
}{
	13:  {"a kernel failed, mostly by reading or writing outside its memory", false},
	31:  {"a kernel accessed memory that it does not own", false},
	43:  {"the GPU stopped working for a program", false},
	45:  {"the driver ended a program's work, mostly after another fault", false},
	48:  {"memory lost data: a double-bit error", true},
	63:  {"a faulty row of memory is being replaced", true},
	64:  {"a faulty row of memory could not be replaced", true},
	74:  {"an NVLink failed", true},
	79:  {"the GPU has fallen off the bus", true},
	92:  {"many single-bit errors in memory", true},
	94:  {"memory lost data of one program", true},
	95:  {"memory lost data of any program", true},
	119: {"the GPU's system processor does not answer", true},
	120: {"the GPU's system processor failed", true},
}

// Hardware reports whether the card itself is known to be at fault.
func (f Fault) Hardware() bool { return faults[f.XID].hardware }

func (f Fault) String() string {
	text := faults[f.XID].text
	if text == "" {
		text = "see NVIDIA's list of XID errors"
	}
	return fmt.Sprintf("XID %d: %s", f.XID, text)
}
