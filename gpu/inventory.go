package gpu

import "fmt"

// Inventory is what the driver knows of a machine's GPUs, in numbers that stay the same whatever CUDA_VISIBLE_DEVICES says.
// GPUs are named by their UUIDs. A machine without a driver has an Inventory with no devices.
//
// Calls may come from any number of goroutines. After Close they return ErrClosed.
type Inventory interface {
	// Driver says which one it is, or why there is none.
	Driver() Driver
	// Devices lists the GPUs in the order of their Index.
	Devices() []Device
	// Memory is that of the whole card, whoever uses it.
	Memory(uuid string) (MemoryUse, error)
	// Processes lists those that compute on the card.
	Processes(uuid string) ([]Process, error)
	// Utilization is that of the last sample period of the driver, 1 s or less.
	Utilization(uuid string) (Utilization, error)
	// Link says how two different GPUs are joined.
	Link(a, b string) (Link, error)
	// Watch reports the faults of all GPUs from now on. The caller closes the Watcher before the Inventory.
	Watch() (Watcher, error)
	// Close ends the use of the driver. It is idempotent.
	Close() error
}

// Driver is the software that runs the GPUs.
type Driver struct {
	Version string `json:"version,omitzero"` // "580.159.03"
	CUDA    string `json:"cuda,omitzero"`    // the newest CUDA that it runs: "13.0"
	// Absent says for people why there is none; empty when there is.
	Absent string `json:"absent,omitzero"`
}

// MemoryUse is in bytes. The driver keeps some for itself, so that used and free may make less than the total.
type MemoryUse struct {
	Used  int64 `json:"used_bytes"`
	Free  int64 `json:"free_bytes"`
	Total int64 `json:"total_bytes"`
}

// Process is one that computes on a GPU.
type Process struct {
	// PID is as the machine counts: in a container with process ids of its own it is another, or the process is not listed.
	PID int `json:"pid"`
	// Used is in bytes, its context included, and -1 where the driver does not say.
	Used int64 `json:"used_bytes"`
}

// Utilization holds shares of time, 0 to 1.
type Utilization struct {
	GPU    float64 `json:"gpu"`    // in which a kernel ran
	Memory float64 `json:"memory"` // in which memory was read or written
}

// Distance is how far apart two GPUs are on the PCI bus, the nearest first.
type Distance int

// The levels at which the paths of two GPUs meet.
const (
	SameBoard    Distance = iota // two GPUs of one card
	OneSwitch                    // one PCIe switch
	ManySwitches                 // several switches, but not the CPU
	HostBridge                   // the CPU's host bridge
	SameNode                     // bridges of one NUMA node
	CrossNode                    // the connection of NUMA nodes
)

var distances = [...]string{"on one board", "behind one PCIe switch", "behind several PCIe switches", "by the CPU's host bridge", "by the bridges of one NUMA node", "across NUMA nodes"}

func (d Distance) String() string {
	if d < 0 || int(d) >= len(distances) {
		return fmt.Sprintf("at distance %d", int(d))
	}
	return distances[d]
}

// Link is how two GPUs are joined.
type Link struct {
	// NVLinks is the number of direct ones, those through an NVSwitch included; 0 without.
	NVLinks  int      `json:"nvlinks"`
	Distance Distance `json:"pci_distance"`
	// Peer says that each can read and write the other's memory, without a copy in the machine's.
	Peer bool `json:"peer"`
}

func (l Link) String() string {
	by := l.Distance.String()
	switch l.NVLinks {
	case 0:
	case 1:
		by = "by 1 NVLink"
	default:
		by = fmt.Sprintf("by %d NVLinks", l.NVLinks)
	}
	if !l.Peer {
		return by + ", without peer access"
	}
	return by + ", with peer access"
}

// Closer reports whether l carries more than m.
func (l Link) Closer(m Link) bool {
	switch {
	case l.NVLinks != m.NVLinks:
		return l.NVLinks > m.NVLinks
	case l.Peer != m.Peer:
		return l.Peer
	}
	return l.Distance < m.Distance
}
