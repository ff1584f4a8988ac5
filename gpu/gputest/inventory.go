// Package gputest provides fake GPUs for tests.
package gputest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/xtts-host/xtts-host/gpu"
)

// Inventory is a gpu.Inventory with cards that a test lists. Set the fields before its first use; Update changes a card
// later.
//
//	i := &gputest.Inventory{Cards: gputest.Cards(2, 24<<30)}
type Inventory struct {
	Version gpu.Driver
	Cards   []gpu.Card
	// Links connects cards by their indices, the lower one first. The default is across NUMA nodes without peer access.
	Links map[[2]int]gpu.Link

	mu       sync.Mutex // guards the rest, and Cards
	closed   bool
	watchers []*watcher
}

// Cards returns n idle cards with that much memory in bytes, whose UUIDs begin with "GPU-a", "GPU-b" and so on.
func Cards(n int, memory int64) []gpu.Card {
	cards := make([]gpu.Card, n)
	for i := range cards {
		cards[i] = gpu.Card{
			Device: gpu.Device{
				Index: i, UUID: fmt.Sprintf("GPU-%c%07x-0000-0000-0000-000000000000", 'a'+i, i),
				PCI: fmt.Sprintf("0000:%02x:00.0", 0x10+i), Name: "Fake GPU", Memory: memory, Capability: 90,
			},
			MemoryUse: gpu.MemoryUse{Free: memory, Total: memory}, Utilization: &gpu.Utilization{},
		}
	}
	return cards
}

// Update changes a card with the function change.
func (i *Inventory) Update(index int, change func(*gpu.Card)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.Cards[index])
}

// Fault reports a fault to every Watcher.
func (i *Inventory) Fault(f gpu.Fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, w := range i.watchers {
		w.faults <- f
	}
}

func (i *Inventory) Driver() gpu.Driver { return i.Version }

func (i *Inventory) Devices() []gpu.Device {
	i.mu.Lock()
	defer i.mu.Unlock()
	devices := make([]gpu.Device, len(i.Cards))
	for n, c := range i.Cards {
		devices[n] = c.Device
	}
	return devices
}

func (i *Inventory) Memory(uuid string) (gpu.MemoryUse, error) {
	c, err := i.card(uuid)
	return c.MemoryUse, err
}

func (i *Inventory) Processes(uuid string) ([]gpu.Process, error) {
	c, err := i.card(uuid)
	return slices.Clone(c.Processes), err
}

// Utilization fails for a card that has none.
func (i *Inventory) Utilization(uuid string) (gpu.Utilization, error) {
	c, err := i.card(uuid)
	if err != nil {
		return gpu.Utilization{}, err
	}
	if c.Utilization == nil {
		return gpu.Utilization{}, fmt.Errorf("utilization of %s: not supported", uuid)
	}
	return *c.Utilization, nil
}

func (i *Inventory) Link(a, b string) (gpu.Link, error) {
	x, err := i.card(a)
	if err != nil {
		return gpu.Link{}, err
	}
	y, err := i.card(b)
	if err != nil {
		return gpu.Link{}, err
	}
	if l, ok := i.Links[[2]int{min(x.Index, y.Index), max(x.Index, y.Index)}]; ok {
		return l, nil
	}
	return gpu.Link{Distance: gpu.CrossNode}, nil
}

func (i *Inventory) card(uuid string) (gpu.Card, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return gpu.Card{}, gpu.ErrClosed
	}
	for _, c := range i.Cards {
		if c.UUID == uuid {
			return c, nil
		}
	}
	return gpu.Card{}, fmt.Errorf("no GPU %s", uuid)
}

func (i *Inventory) Watch() (gpu.Watcher, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, gpu.ErrClosed
	}
	w := &watcher{inventory: i, faults: make(chan gpu.Fault, 64)}
	i.watchers = append(i.watchers, w)
	return w, nil
}

func (i *Inventory) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	return nil
}

type watcher struct {
	inventory *Inventory
	faults    chan gpu.Fault
}

func (w *watcher) Faults() <-chan gpu.Fault { return w.faults }

func (w *watcher) Close() error {
	i := w.inventory
	i.mu.Lock()
	defer i.mu.Unlock()
	if at := slices.Index(i.watchers, w); at >= 0 {
		i.watchers = slices.Delete(i.watchers, at, at+1)
		close(w.faults)
	}
	return nil
}
