// Package gpu knows the graphics processors of a machine by what identifies them for good: their UUID. It is pure Go
// and asks the driver's own files, so it works in every build, also where no CUDA library can be loaded.
//
//	devices, err := gpu.Detect()
//	if len(devices) == 0 { ... } // train on the CPU
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

// Device is one GPU.
type Device struct {
	// Index is its place in the order of PCI addresses, as CUDA counts with CUDA_DEVICE_ORDER=PCI_BUS_ID.
	Index int
	UUID  string // "GPU-" and 32 hex digits in five groups
	PCI   string // "0000:1b:00.0"
	Name  string // "NVIDIA H200"
}

func (d Device) String() string { return fmt.Sprintf("GPU %d (%s, %s)", d.Index, d.Name, d.UUID) }

// driverFolder is where NVIDIA's kernel module describes each card.
const driverFolder = "proc/driver/nvidia/gpus"

// Detect lists the GPUs that the NVIDIA kernel driver has found, in the order of their PCI addresses. A machine without the
// driver has none.
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
