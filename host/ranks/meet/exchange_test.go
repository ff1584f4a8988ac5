package meet

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/world"
)

// canned is a group whose other ranks have sent what it says.
type canned struct {
	rank  int
	texts []string // by rank; this rank's is what it sends
	calls int
	lost  error
}

func (c *canned) World() world.World { return world.World{Rank: c.rank, Size: len(c.texts)} }

func (c *canned) All(own []byte) (all [][]byte, err error) {
	c.calls++
	c.texts[c.rank] = string(own)
	for _, text := range c.texts {
		all = append(all, []byte(text))
	}
	return all, c.lost
}

func (c *canned) Share(own []byte) ([]byte, error) {
	all, err := c.All(own)
	return all[0], err
}

// TestExchange: every rank gets all values in the order of the ranks, or that of rank 0. A value that cannot be encoded
// is an error of its rank, which takes part all the same.
func TestExchange(t *testing.T) {
	all, err := Exchange(&canned{rank: 1, texts: []string{"3", "", "7"}}, 5)
	if err != nil || len(all) != 3 || all[0] != 3 || all[1] != 5 || all[2] != 7 {
		t.Error(all, err)
	}
	lead, err := FromLead(&canned{rank: 1, texts: []string{"3", ""}}, 5)
	if err != nil || lead != 3 {
		t.Error(lead, err)
	}
	if lead, err = FromLead(&canned{texts: []string{"", "4"}}, 5); err != nil || lead != 5 {
		t.Error(lead, err)
	}
	for name, call := range map[string]func(*canned) error{
		"all":     func(c *canned) error { _, err := Exchange(c, math.NaN()); return err },
		"of lead": func(c *canned) error { _, err := FromLead(c, math.NaN()); return err },
	} {
		c := &canned{texts: []string{"", "4"}}
		if _, ok := errors.AsType[*json.UnsupportedValueError](call(c)); !ok || c.calls != 1 {
			t.Errorf("%s: it took part %d times", name, c.calls)
		}
		lost := errors.New("rank 1 ended")
		if err := call(&canned{texts: []string{"", "4"}, lost: lost}); !errors.Is(err, lost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
