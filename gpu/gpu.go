// Package gpu describes the GPUs of a machine, identified by their UUIDs. It is pure Go. The driver is accessed through
// the interfaces Inventory (package nvml, in every build) and Context (package cuda); package gputest implements both
// without a GPU.
//
//	inventory, err := nvml.Open()
//	...
//	machine, err := gpu.Look(inventory)
//	...
//	device, err := gpu.Resolve("GPU-5f", devices)
package gpu

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// MB is the unit of memory in flags and messages about GPUs: 2^20 bytes, as in nvidia-smi.
const MB = 1 << 20

// StagingBytes is a size of pinned memory for the copies of weights to and from a GPU: large enough for full speed, and
// small compared with them.
const StagingBytes = 32 * MB

// Device is one GPU.
type Device struct {
	// Index is its index in the order of PCI addresses, as CUDA counts with CUDA_DEVICE_ORDER=PCI_BUS_ID.
	Index  int    `json:"index"`
	UUID   string `json:"uuid"`                  // "GPU-" and 32 hex digits in five groups
	PCI    string `json:"pci"`                   // "0000:1b:00.0"
	Name   string `json:"name"`                  // "NVIDIA H200"
	Memory int64  `json:"memory_bytes,omitzero"` // total memory in bytes; 0 from Detect
	// Capability is CUDA's compute capability times ten: 90 is sm_90. 0 means unknown.
	Capability int `json:"compute_capability,omitzero"`
	// Multiprocessors are what this process may use of the GPU. Only the device of a Context has them.
	Multiprocessors Multiprocessors `json:"-"`
}

// Multiprocessors are those of a GPU, or of the part of it (MIG, MPS) that a process may use.
type Multiprocessors struct {
	Count        int
	SharedMemory int // of each, in bytes
	// Cooperative says that the driver can make all blocks of a launch run at the same time, so that they may wait for
	// each other.
	Cooperative bool
}

func (d Device) String() string { return fmt.Sprintf("GPU %d (%s, %s)", d.Index, d.Name, d.UUID) }

// driverFolder is where NVIDIA's kernel module describes each card.
const driverFolder = "proc/driver/nvidia/gpus"

// Detect lists the GPUs that the NVIDIA kernel driver has found, in the order of their PCI addresses. A machine without
// the driver has none. It reads the driver's files, so it needs no library. An Inventory provides more details.
func Detect() ([]Device, error) { return detect(os.DirFS("/")) }

func detect(root fs.FS) ([]Device, error) {
	cards, err := fs.ReadDir(root, driverFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list GPUs: %w", err)
	}
	var devices []Device
	for _, card := range cards {
		d, err := read(root, path.Join(driverFolder, card.Name(), "information"))
		if err != nil {
			return nil, fmt.Errorf("list GPUs: %w", err)
		}
		d.PCI = cmp.Or(d.PCI, card.Name())
		devices = append(devices, d)
	}
	slices.SortFunc(devices, func(a, b Device) int { return cmp.Compare(a.PCI, b.PCI) })
	for i := range devices {
		devices[i].Index = i
	}
	return devices, nil
}

// read parses the lines "Key:   value" of one card.
func read(root fs.FS, file string) (Device, error) {
	f, err := root.Open(file)
	if err != nil {
		return Device{}, err
	}
	defer f.Close()
	var d Device
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			d.Name = value
		case "GPU UUID":
			d.UUID = value
		case "Bus Location":
			d.PCI = value
		}
	}
	return d, lines.Err()
}
