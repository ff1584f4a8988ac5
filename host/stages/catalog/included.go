package catalog

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// included are the plugins that come with the program, and their stages.
var included = map[string][]string{
	"augment": {"waveaug", "specaugment", "noise", "background", "gain", "loudness", "clipping", "companding", "shift",
		"trim", "dropout", "equalizer", "reverb", "room", "speed", "tempo", "pitch"},
	"features":  {"logmel", "prosody"},
	"inference": {"codes", "conditioning"},
}

// Included returns the plugin that comes with the program and has a stage, "stage" or "plugin/stage", or "".
func Included(stage string) string {
	for _, id := range slices.Sorted(maps.Keys(included)) {
		for _, s := range included[id] {
			if stage == s || stage == id+"/"+s {
				return id
			}
		}
	}
	return ""
}

// Comes reports whether a plugin of that name comes with the program.
func Comes(name string) bool { return included[name] != nil }

// Taken returns the plugin that has a name, as its id or that of a stage: one that comes with the program, or one of
// entries. It is "" if the name is free.
func Taken(name string, entries []Entry) string {
	if _, ok := included[name]; ok {
		return name + ", which comes with xtts-host"
	}
	if id := Included(name); id != "" {
		return id + ", which comes with xtts-host"
	}
	for _, e := range entries {
		if e.Manifest != nil && (e.Manifest.ID == name ||
			slices.ContainsFunc(e.Manifest.Stages, func(s manifest.Stage) bool { return s.Name == name })) {
			return e.Manifest.ID + " in " + e.Dir
		}
	}
	return ""
}

// missingHint says which plugin that comes with the program has a stage that is missing, or is "".
func missingHint(name string, entries []Entry) string {
	id := Included(name)
	if id == "" || slices.ContainsFunc(entries, func(e Entry) bool { return e.Name() == id }) {
		return ""
	}
	from := id
	if built := builtFolder(); built != "" {
		from = hint.Path(built + "/" + id)
	}
	return fmt.Sprintf("%s is a stage of the plugin %s, which comes with xtts-host: link %s into the folder of "+
		"--plugins", name, id, from)
}

// ambiguousHint names the plugins of which one is to change. It names no folders: that of a link is not to be removed.
func ambiguousHint(stage string, candidates []string) string {
	var plugins []string
	for _, c := range candidates {
		plugins = append(plugins, strings.TrimSuffix(c, "/"+stage))
	}
	return fmt.Sprintf("rename the stage %s of one of these plugins, or take one out of the folder of --plugins: %s",
		stage, strings.Join(plugins, ", "))
}

// sumsHint says how to write the sums of a plugin again: by its Makefile, if that writes them.
func sumsHint(root *os.Root) string {
	with := "write its " + manifest.SumFile + " again with sha256sum"
	if text, err := readFile(root, "Makefile"); err == nil &&
		strings.Contains(string(text), manifest.SumFile) {
		with = "make -C " + hint.Path(root.Name()) + " writes its " + manifest.SumFile + " again"
	}
	return "install the plugin again; if the change is yours, " + with
}
