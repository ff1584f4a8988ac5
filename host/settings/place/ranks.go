package place

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// ModelGPUs returns the GPUs that --model-gpu names, one for each rank of a machine: "0,1".
func ModelGPUs(flag string) []string { return strings.Split(flag, ",") }

// ofRank replaces what a request asks for the ranks of a machine by what it asks for this one.
func (s *roles) ofRank() error {
	names := ModelGPUs(s.Model)
	switch {
	case len(names) > 1 && slices.Contains(names, ""):
		return refuse(fmt.Sprintf("--model-gpu %s: a name is missing", s.Model), "name GPUs as in --model-gpu 0,1")
	case s.Ranks.Alone() && len(names) == 1:
		return nil
	case s.Ranks.Alone():
		return refuse(fmt.Sprintf("--model-gpu %s: this command computes on one GPU", s.Model),
			fmt.Sprintf("name one of them: --data-gpu %s --model-gpu %s", cmp.Or(s.Data, CPU), names[0]))
	case len(names) > 1:
		return s.listed(names)
	case s.Model != "" && s.Model != Auto:
		if s.Ranks.Local > 0 || s.Ranks.LocalSize > 1 {
			return refuse(fmt.Sprintf("--model-gpu %s: each rank of a machine needs a GPU of its own", s.Model),
				"leave it out: rank N of a machine takes the visible GPU N; or name a list, such as --model-gpu 0,1")
		}
		return nil
	case len(s.visible) == 0 || s.machine.Driver.Fault != "":
		return nil // Decide says why there is none
	}
	return s.counted()
}

// listed takes the rank's GPU of a list.
func (s *roles) listed(names []string) error {
	var cards []string
	for i, name := range names {
		card := name
		if s.machine.Driver.Fault == "" {
			d, err := s.resolve("--model-gpu", name)
			if err != nil {
				return err
			}
			card = d.UUID
		}
		if slices.Contains(cards[:i], card) {
			return refuse(fmt.Sprintf("--model-gpu %s: GPU %s is named twice", s.Model, name), "name each once")
		}
		cards = append(cards, card)
	}
	if n := cmp.Or(s.Ranks.LocalSize, s.Ranks.Local+1); n > len(names) || s.Ranks.LocalSize > 0 && n != len(names) {
		return refuse(
			fmt.Sprintf("--model-gpu %s names %d GPUs, and this machine has %d ranks", s.Model, len(names), n),
			"name as many as there are ranks on a machine")
	}
	s.Model, s.Data = names[s.Ranks.Local], cmp.Or(s.Data, CPU)
	return nil
}

// counted takes the visible GPU that has the rank's number. Of a launcher that shows each rank one GPU, it takes that
// one.
func (s *roles) counted() error {
	at, all := s.Ranks.Local, len(s.visible)
	if all == 1 && s.Visible != nil {
		at = 0
	}
	if at >= all {
		return refuse(fmt.Sprintf("rank %d of this machine has no GPU: %d are visible", s.Ranks.Local, all),
			hint.Command("doctor shows every GPU")+"; start one rank for each, or --device cpu")
	}
	s.Model = strconv.Itoa(s.visible[at].Index)
	if s.Data == Auto && s.Ranks.LocalSize > 0 && s.Ranks.LocalSize < all { // one that no rank trains on
		s.Data = strconv.Itoa(s.visible[s.Ranks.LocalSize].Index)
	}
	if s.Data == "" || s.Data == Auto {
		s.Data = CPU
	}
	return nil
}
