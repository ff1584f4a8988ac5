package config

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/shared/hint"
)

//go:embed foreign.txt
var foreignText string

// foreign has the answers of foreign.txt by name.
var foreign = sync.OnceValue(func() map[string]string {
	all, names, answer := map[string]string{}, []string{}, ""
	end := func() {
		for _, name := range names {
			all[name] = strings.ReplaceAll(strings.TrimSpace(answer), "`xtts-host ", "`"+hint.Command(""))
		}
		names, answer = nil, ""
	}
	for line := range strings.Lines(foreignText) {
		switch {
		case line[0] == '#' || line == "\n":
		case line[0] == ' ':
			answer += " " + strings.TrimSpace(line)
		default:
			if answer != "" {
				end()
			}
			names = append(names, strings.Fields(line)...)
		}
	}
	end()
	return all
})

// ForeignHint returns the hint for a name that another trainer has for a setting, such as num_gpus, trainer.devices or
// coqpit.batch_size, or "" for other names. known reports whether a flag exists where the name was typed, and written is how
// such a setting is written there. Case, underscores and what comes before the last dot do not matter.
func ForeignHint(typed string, known func(flag string) bool, written func(flag string) string) string {
	name := strings.ToLower(strings.ReplaceAll(strings.TrimLeft(typed, "-+~"), "_", "-"))
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last != name && known(last) {
		return "did you mean " + written(last) + "?"
	}
	for _, name := range []string{name, last, strings.TrimPrefix(last, "no-")} {
		answer, ok := foreign()[name]
		flag, same := strings.CutPrefix(answer, "--")
		switch {
		case !ok:
		case !same || strings.Contains(flag, " "):
			return answer
		case known(flag):
			return "did you mean " + written(flag) + "?"
		}
	}
	return ""
}

// unknownName is the hint for a setting's name that is not known: an answer to that of another trainer, or else the nearest of
// the names.
func unknownName(flags *pflag.FlagSet, typed, setting string, names []string, written func(flag string) string) string {
	known := func(flag string) bool { return flags.Lookup(flag) != nil }
	if advice := ForeignHint(setting, known, written); advice != "" {
		return advice
	}
	return hint.DidYouMean(typed, names)
}
