package gpu

import "fmt"

// Machine is what an Inventory said at one moment, as plain data: decisions about it are functions of it, and it can pass
// from one process to another as JSON. The zero Machine has no GPU.
type Machine struct {
	Driver Driver `json:"driver"`
	// Cards are in the order of their Index.
	Cards []Card `json:"cards"`
	// Links has one entry for each two cards.
	Links []CardLink `json:"links"`
}

// Card is a GPU and the use that is made of it.
type Card struct {
	Device
	MemoryUse
	// Utilization is nil where the driver does not say, as of a part of a card.
	Utilization *Utilization `json:"utilization"`
	// Processes is nil where the driver does not say.
	Processes []Process `json:"processes"`
}

// CardLink joins the cards with the indices A < B.
type CardLink struct {
	A int `json:"a"`
	B int `json:"b"`
	Link
}

// Look asks for all that a Machine holds. Utilization, processes and links may be unknown to a driver: it says nothing then,
// or names the farthest distance.
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

// Link returns how two cards are joined.
func (m Machine) Link(a, b Device) Link {
	for _, l := range m.Links {
		if l.A == min(a.Index, b.Index) && l.B == max(a.Index, b.Index) {
			return l.Link
		}
	}
	return Link{Distance: CrossNode}
}
