package selection

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Settings are the sources of groups. For each value of a parameter, the first entry decides that matches and has the
// value; the flags come before the bundle.
type Settings struct {
	Bundle []manifest.Group
	// LRFactor and WeightDecay are those of --lr-factor and --weight-decay-of: PATTERN=NUMBER.
	LRFactor, WeightDecay []string
	// Known are parameters: each pattern of a flag must match one of them.
	Known []manifest.Parameter
}

// Groups returns the groups of a player's parameters, each with different values, and with the names of its parameters
// instead of patterns. Parameters without values of their own are in no group.
func Groups(parameters []manifest.Parameter, s Settings) ([]manifest.Group, error) {
	factors, err := parse("--lr-factor", s.LRFactor, s.Known)
	if err != nil {
		return nil, err
	}
	decays, err := parse("--weight-decay-of", s.WeightDecay, s.Known)
	if err != nil {
		return nil, err
	}
	var entries []manifest.Group
	for _, e := range factors {
		entries = append(entries, manifest.Group{Match: e.pattern, LRFactor: &e.value})
	}
	for _, e := range decays {
		entries = append(entries, manifest.Group{Match: e.pattern, WeightDecay: &e.value})
	}
	entries = append(entries, s.Bundle...)
	var list []manifest.Group
	index := map[string]int{}
	for _, p := range parameters {
		g := valuesOf(p, entries)
		if g.LRFactor == nil && g.WeightDecay == nil {
			continue
		}
		key := fmt.Sprint(text(g.LRFactor), " ", text(g.WeightDecay))
		at, ok := index[key]
		if !ok {
			at, index[key] = len(list), len(list)
			list = append(list, g)
		}
		list[at].Match = append(list[at].Match, p.Name)
	}
	return list, nil
}

// valuesOf returns the values of a parameter.
func valuesOf(p manifest.Parameter, entries []manifest.Group) manifest.Group {
	var g manifest.Group
	for _, e := range entries {
		if p.MatchesAny(e.Match) {
			g.LRFactor, g.WeightDecay = cmp.Or(g.LRFactor, e.LRFactor), cmp.Or(g.WeightDecay, e.WeightDecay)
		}
	}
	if g.LRFactor != nil && *g.LRFactor == 1 {
		g.LRFactor = nil
	}
	return g
}

func text(v *float64) string {
	if v == nil {
		return "none"
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// entry is PATTERN=NUMBER.
type entry struct {
	pattern []string
	value   float64
}

func parse(flag string, texts []string, parameters []manifest.Parameter) (entries []entry, err error) {
	for _, text := range texts {
		pattern, number, _ := strings.Cut(text, "=")
		value, err := strconv.ParseFloat(number, 64)
		if errors.Is(err, strconv.ErrRange) || math.IsInf(value, 0) || value > manifest.MaxRate {
			return nil, hint.Errorf("write a smaller number: text_encoder=0.1", "%s %s: the largest value is %d", flag,
				text, int(manifest.MaxRate))
		}
		if err != nil || value < 0 || math.IsNaN(value) {
			return nil, hint.Errorf("write a pattern of names and a number of at least 0: text_encoder=0.1",
				"%s %s: not PATTERN=NUMBER", flag, text)
		}
		if err := check(flag+" "+text, pattern, parameters); err != nil {
			return nil, err
		}
		entries = append(entries, entry{[]string{pattern}, value})
	}
	return entries, nil
}

// GroupIndex returns the index of each parameter's group in a resolved list, counted from 1.
func GroupIndex(list []manifest.Group) map[string]int {
	index := map[string]int{}
	for i, g := range list {
		for _, name := range g.Match {
			index[name] = i + 1
		}
	}
	return index
}
