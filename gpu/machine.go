package gpu

import "fmt"

// Machine is the content of an Inventory at one time, as plain data. Decisions about it are pure functions, and it can
// be sent between processes as JSON. The zero Machine has no GPU.
type Machine struct {
	Driver Driver `json:"driver"`
	// Cards are in the order of their Index.
	Cards []Card `json:"cards"`
	// Links has one entry for each pair of cards.
	Links []CardLink `json:"links"`
}

// Card is a GPU and its current use.
type Card struct {
	Device
	MemoryUse
	// Utilization is nil if the driver does not report it, as for a part of a card (MIG).
	Utilization *Utilization `json:"utilization"`
	// Processes is nil if the driver does not report them.
	Processes []Process `json:"processes"`
}

// CardLink connects the cards with the indices A < B.
type CardLink struct {
	A int `json:"a"`
	B int `json:"b"`
	Link
}

// Look reads everything that a Machine holds. If the driver does not know utilization or processes, they are nil; if it
// does not know a link, the distance is the farthest.
func Look(i Inventory) (Machine, error) {
	m := Machine{Driver: i.Driver()}
	for _, d := range i.Devices() {
		use, err := i.Memory(d.UUID)
		if err != nil {
			return Machine{}, fmt.Errorf("look at %s: %w", d, err)
		}
		c := Card{Device: d, MemoryUse: use}
		if u, err := i.Utilization(d.UUID); err == nil {
			c.Utilization = &u
		}
		if p, err := i.Processes(d.UUID); err == nil {
			c.Processes = p
		}
		for _, other := range m.Cards {
			l, err := i.Link(other.UUID, d.UUID)
			if err != nil {
				l = Link{Distance: CrossNode}
			}
			m.Links = append(m.Links, CardLink{other.Index, d.Index, l})
		}
		m.Cards = append(m.Cards, c)
	}
	return m, nil
}

// Link returns how two cards are connected.
func (m Machine) Link(a, b Device) Link {
	for _, l := range m.Links {
		if l.A == min(a.Index, b.Index) && l.B == max(a.Index, b.Index) {
			return l.Link
		}
	}
	return Link{Distance: CrossNode}
}
