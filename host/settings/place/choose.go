package place

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// choose places the roles that are Auto; p has the others already. It prefers idle GPUs, then the GPU with the most
// memory for the model, then the two GPUs with the best connection. Equal choices are decided by the index, the data
// GPU first.
func (s *roles) choose(p Placement) (Placement, error) {
	type pair struct{ data, model gpu.Card }
	var pairs []pair
	for _, model := range s.cards(p.Model.GPU, s.Model) {
		if s.Data == CPU {
			pairs = append(pairs, pair{model: model})
			continue
		}
		for _, data := range s.cards(p.Data.GPU, s.Data) {
			if data.UUID != model.UUID {
				pairs = append(pairs, pair{data, model})
			}
		}
	}
	if len(pairs) == 0 {
		if len(s.visible) == 0 {
			return p, refuse("--model-gpu auto: "+s.nothing(), hint.Command("--device cpu trains on the CPU"))
		}
		return p, s.tooFew()
	}
	best := slices.MinFunc(pairs, func(a, b pair) int { // the first of equal ones
		if x, y := idle(a.data, a.model), idle(b.data, b.model); x != y {
			return y - x
		}
		if x, y := gigabytes(a.model), gigabytes(b.model); x != y {
			return y - x
		}
		if s.Data != CPU {
			x, y := s.machine.Link(a.data.Device, a.model.Device), s.machine.Link(b.data.Device, b.model.Device)
			switch {
			case x.Closer(y):
				return -1
			case y.Closer(x):
				return 1
			}
		}
		if a.data.Index != b.data.Index {
			return a.data.Index - b.data.Index
		}
		return a.model.Index - b.model.Index
	})
	p.Model.GPU = best.model.Device
	if s.Data == CPU {
		p.Reason = fmt.Sprintf("auto: GPU %d is %s, of %d visible", best.model.Index, use(best.model), len(s.visible))
		return p, nil
	}
	p.Data.GPU = best.data.Device
	p.Reason = fmt.Sprintf("auto: of %d visible GPUs, %d (%s) and %d (%s) are connected %s", len(s.visible),
		best.data.Index, use(best.data), best.model.Index, use(best.model),
		s.machine.Link(best.data.Device, best.model.Device))
	return p, nil
}

// cards returns the cards that a role may have: the named one, or all visible ones for Auto.
func (s *roles) cards(given gpu.Device, asked string) []gpu.Card {
	var cards []gpu.Card
	for _, c := range s.machine.Cards {
		if asked == Auto && slices.Contains(s.visible, c.Device) || asked != Auto && c.UUID == given.UUID {
			cards = append(cards, c)
		}
	}
	return cards
}

// gigabytes rounds a card's memory, because two cards of one model may differ slightly.
func gigabytes(c gpu.Card) int { return int((c.Memory + 1<<29) >> 30) }

// inUse is the share of a card's memory from which it counts as used. The driver alone uses less than 1 %.
const inUse = 0.05

func busy(c gpu.Card) bool { return float64(c.Used) > inUse*float64(c.Total) }

// idle counts the idle cards. No card (the CPU) counts as one.
func idle(cards ...gpu.Card) int {
	n := 0
	for _, c := range cards {
		if !busy(c) {
			n++
		}
	}
	return n
}

// use describes the memory use of a card.
func use(c gpu.Card) string {
	if busy(c) {
		return fmt.Sprintf("%d of %d MB in use", c.Used/gpu.MB, c.Total/gpu.MB)
	}
	return fmt.Sprintf("idle, %d MB", c.Total/gpu.MB)
}
