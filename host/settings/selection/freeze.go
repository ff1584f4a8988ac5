package selection

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Patterns has the patterns of one of the flags; a run uses at most one of them.
//
// manifest.Parameter.Matches says what a pattern matches.
type Patterns struct {
	// Freeze selects parameters that are not trained.
	Freeze []string
	// TrainOnly selects parameters that are trained; all others are not.
	TrainOnly []string
}

// Frozen returns the parameters that the patterns freeze, by name. Parameters that the bundle freezes stay frozen with
// any pattern and are not in the list.
func Frozen(parameters []manifest.Parameter, p Patterns) (map[string]bool, error) {
	flag, patterns := "--freeze", p.Freeze
	if len(p.TrainOnly) > 0 {
		flag, patterns = "--train-only", p.TrainOnly
	}
	named := map[string]bool{}
	for _, pattern := range patterns {
		if err := check(flag+" "+pattern, pattern, parameters); err != nil {
			return nil, err
		}
		for _, q := range parameters {
			if q.MatchesAny([]string{pattern}) {
				named[q.Name] = true
			}
		}
	}
	frozen, trained := map[string]bool{}, 0
	for _, q := range parameters {
		switch {
		case q.Frozen:
		case len(patterns) > 0 && named[q.Name] == (flag == "--freeze"):
			frozen[q.Name] = true
		default:
			trained++
		}
	}
	if len(patterns) > 0 && trained == 0 {
		return nil, hint.Errorf(
			"leave a parameter to train; some may be frozen by the bundle ("+hint.Command("graph inspect")+")",
			"%s %s: no parameter is left to train", flag, strings.Join(patterns, ","))
	}
	return frozen, nil
}

// check refuses a pattern that matches no parameter. setting is the flag and its value, for the message.
func check(setting, pattern string, parameters []manifest.Parameter) error {
	for _, q := range parameters {
		ok, err := q.Matches(pattern)
		if err != nil {
			return hint.Errorf("write a name with * for any text, ? for one character, [abc] for one of these",
				"%s: not a pattern", setting)
		}
		if ok {
			return nil
		}
	}
	return hint.Errorf(nearest(pattern, parameters), "%s: no parameter has such a name", setting)
}

// FrozenIdentity returns a text for checkpoints that identifies the frozen parameters: their number, and a hash of
// their names. It is "" if none is frozen.
func FrozenIdentity(frozen map[string]bool, parameters int) string {
	if len(frozen) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(frozen))
	return fmt.Sprintf("%d of %d tensors (%.6x)", len(names), parameters,
		sha256.Sum256([]byte(strings.Join(names, "\n"))))
}
