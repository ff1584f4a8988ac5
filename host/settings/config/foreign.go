package config

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/shared/hint"
)

//go:embed foreign.txt
var foreignText string

// answer is what is meant by a name: one of the flags, if it exists, or else the text, if there is one.
type answer struct {
	flags []string
	text  string
}

func newAnswer(lines []string) (a answer) {
	words := strings.Fields(lines[0])
	if !slices.ContainsFunc(words, func(w string) bool { return !strings.HasPrefix(w, "--") }) {
		for _, word := range words {
			a.flags = append(a.flags, word[len("--"):])
		}
		lines = lines[1:]
	}
	a.text = strings.ReplaceAll(strings.Join(lines, " "), "`xtts-host ", "`"+hint.Command(""))
	return a
}

// foreign has the answers of foreign.txt by name.
var foreign = sync.OnceValue(func() map[string]answer {
	all, names, lines := map[string]answer{}, []string{}, []string(nil)
	end := func() {
		a := newAnswer(lines)
		for _, name := range names {
			all[name] = a
		}
		names, lines = nil, nil
	}
	for line := range strings.Lines(foreignText) {
		switch {
		case line[0] == '#' || line == "\n":
		case line[0] == ' ':
			lines = append(lines, strings.TrimSpace(line))
		default:
			if lines != nil {
				end()
			}
			names = append(names, strings.Fields(line)...)
		}
	}
	end()
	return all
})

// ForeignHint returns the hint for a name that another trainer has for a setting, such as num_gpus, trainer.devices or
// coqpit.batch_size, or "" for other names. known reports whether a flag exists where the name was typed, and written
// is how such a setting is written there. Case, underscores and what comes before the last dot do not matter.
func ForeignHint(typed string, known func(flag string) bool, written func(flag string) string) string {
	name := strings.ToLower(strings.ReplaceAll(strings.TrimLeft(typed, "-+~"), "_", "-"))
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last != name && known(last) {
		return "did you mean " + written(last) + "?"
	}
	for _, name := range []string{name, last, strings.TrimPrefix(last, "no-")} {
		a := foreign()[name]
		if i := slices.IndexFunc(a.flags, known); i >= 0 {
			return "did you mean " + written(a.flags[i]) + "?"
		}
		if a.text != "" {
			return a.text
		}
	}
	return ""
}

// unknownName is the hint for a setting's name that is not known: an answer to that of another trainer, or else the
// nearest of the names.
func unknownName(flags *pflag.FlagSet, typed, setting string, names []string, written func(flag string) string) string {
	known := func(flag string) bool { return flags.Lookup(flag) != nil }
	if advice := ForeignHint(setting, known, written); advice != "" {
		return advice
	}
	return hint.DidYouMean(typed, names)
}
