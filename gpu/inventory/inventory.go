// Package inventory opens the inventory of the machine's GPUs: that of NVML, with whether CUDA can use them.
package inventory

import (
	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/gpu/nvml"
)

// Open opens NVML's inventory, and starts the CUDA driver if there is a GPU: Driver.Fault says why that fails. Call
// Close when done.
func Open() (gpu.Inventory, error) {
	cards, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	i := inventory{Inventory: cards}
	if len(cards.Devices()) > 0 {
		if fault := cuda.Start(); fault != nil {
			i.fault = fault.Error()
		}
	}
	return i, nil
}

// inventory is NVML's with the driver's fault.
type inventory struct {
	gpu.Inventory
	fault string
}

func (i inventory) Driver() gpu.Driver {
	d := i.Inventory.Driver()
	d.Fault = i.fault
	return d
}
