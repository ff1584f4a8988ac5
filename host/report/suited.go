package report

import "fmt"

// largeCard is the memory in bytes from which a card is a large one. In decimal GB: a card shows less than it is sold with, 24 GB are
// 23,028 to 24,576 MiB.
const largeCard = 24e9

// Suited returns the batch size and the number of ring slots that suit a GPU with so many bytes of memory. A larger batch may fit;
// beyond most it is not to be expected to. Source: the dual-GPU training of MyXTTSModel for cards of less than 12 GB, and of
// 24 GB and more; what lies between has its target for all cards.
func Suited(card int64) (batch, buffer, most int) {
	switch {
	case card < 12e9:
		return 16, 25, 16
	case card < largeCard:
		return 32, 50, 32
	}
	return 48, 100, 48 * int(card/largeCard)
}

// suited says what suits the card, when the batch is smaller.
func (s Setup) suited() string {
	batch, buffer, _ := Suited(s.Card)
	if s.OnCPU || s.Card <= 0 || s.BatchSize >= batch {
		return ""
	}
	return fmt.Sprintf("; %d, with --buffer-size %d, suit a GPU of %s", batch, buffer, size(s.Card))
}
