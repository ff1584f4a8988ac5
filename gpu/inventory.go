package gpu

import "fmt"

// Inventory is what the driver knows about a machine's GPUs, independent of CUDA_VISIBLE_DEVICES. GPUs are identified
// by their UUIDs. A machine without a driver has an Inventory without devices.
//
// It is safe for concurrent use. After Close, calls return ErrClosed.
type Inventory interface {
	// Driver returns the driver, or why there is none.
	Driver() Driver
	// Devices lists the GPUs in the order of their Index.
	Devices() []Device
	// Memory returns the memory use of the whole card by all processes.
	Memory(uuid string) (MemoryUse, error)
	// Processes returns the processes that compute on the card.
	Processes(uuid string) ([]Process, error)
	// Utilization returns the utilization in the driver's last sample period, 1 s or less.
	Utilization(uuid string) (Utilization, error)
	// Link returns how two different GPUs are connected.
	Link(a, b string) (Link, error)
	// Watch reports the faults of all GPUs from now on. The caller must close the Watcher before the Inventory.
	Watch() (Watcher, error)
	// Close releases the driver. It is idempotent.
	Close() error
}

// Driver is the software that runs the GPUs.
type Driver struct {
	Version string `json:"version,omitzero"` // "580.159.03"
	CUDA    string `json:"cuda,omitzero"`    // the newest CUDA version that it supports: "13.0"
	// Absent says why there is no driver, for messages; it is empty if there is one.
	Absent string `json:"absent,omitzero"`
	// Fault says why CUDA does not start although there is a driver with GPUs; it is empty otherwise.
	Fault string `json:"fault,omitzero"`
}

// FaultHint is the next step for the user where a driver does not start.
const FaultHint = "see what nvidia-smi and CUDA_VISIBLE_DEVICES say"

// MemoryUse is in bytes. The driver reserves some memory for itself, so used plus free may be less than the total.
type MemoryUse struct {
	Used  int64 `json:"used_bytes"`
	Free  int64 `json:"free_bytes"`
	Total int64 `json:"total_bytes"`
}

// Process is a process that computes on a GPU.
type Process struct {
	// PID is the process id on the machine. In a container with its own process ids it differs from the container's, or
	// the process is not listed.
	PID int `json:"pid"`
	// Used is in bytes, including the CUDA context, or -1 if the driver does not report it.
	Used int64 `json:"used_bytes"`
}

// Utilization holds shares of time, 0 to 1.
type Utilization struct {
	GPU    float64 `json:"gpu"`    // in which a kernel ran
	Memory float64 `json:"memory"` // in which memory was read or written
}

// Distance is the distance of two GPUs on the PCI bus, the nearest first.
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

var distances = [...]string{
	"on one board", "through one PCIe switch", "through several PCIe switches", "through the CPU's host bridge",
	"through the bridges of one NUMA node", "across NUMA nodes",
}

func (d Distance) String() string {
	if d < 0 || int(d) >= len(distances) {
		return fmt.Sprintf("at distance %d", int(d))
	}
	return distances[d]
}

// Link is the connection of two GPUs.
type Link struct {
	// NVLinks is the number of direct links, including those through an NVSwitch; 0 if there are none.
	NVLinks  int      `json:"nvlinks"`
	Distance Distance `json:"pci_distance"`
	// Peer means that each can access the other's memory without a copy in host memory.
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

// Closer reports whether l is faster than m.
func (l Link) Closer(m Link) bool {
	switch {
	case l.NVLinks != m.NVLinks:
		return l.NVLinks > m.NVLinks
	case l.Peer != m.Peer:
		return l.Peer
	}
	return l.Distance < m.Distance
}
