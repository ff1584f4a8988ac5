package bottleneck

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// largeCard is the memory in bytes from which a card counts as large. It is in decimal GB, because a card reports less
// than its nominal size: a card of 24 GB reports 23,028 to 24,576 MiB.
const largeCard = 24e9

// Suited returns the recommended batch size and number of ring slots for a GPU with so many bytes of memory. most is
// the largest batch that is expected to fit. Source: the dual-GPU training of MyXTTSModel for cards of less than 12 GB,
// and of 24 GB and more; cards in between get its recommendation for all cards.
func Suited(card int64) (batch, buffer, most int) {
	switch {
	case card < 12e9:
		return 16, 25, 16
	case card < largeCard:
		return 32, 50, 32
	}
	return 48, 100, 48 * int(card/largeCard)
}

// recommendation returns the recommendation for the card if the batch is smaller, or "".
func (s Setup) recommendation() string {
	batch, buffer, _ := Suited(s.Card)
	if s.OnCPU || s.Card <= 0 || s.BatchSize >= batch {
		return ""
	}
	return fmt.Sprintf("; %d, with --buffer-size %d, suit a GPU of %s", batch, buffer, units.Size(s.Card))
}
