package config

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// paths are the settings that name a file or a folder.
var paths = []string{
	"plugins", "graph", "train-data", "val-data", "run-dir", "resume", "resume-or-start", "init", "ort-lib",
	"cache-dir", "debug-dir", "trace", "feature-cache", "samples",
}

// RunYAML returns the text of the config.yaml of a run: YAML with absolute paths, so that the run can be resumed from
// any working directory.
func (s *Set) RunYAML(changes ...Change) string {
	first := func(name string) string { return firstOrigin(s, name) }
	for _, name := range paths {
		if path := s.flags.Lookup(name).Value.String(); path != "" && !strings.HasPrefix(path, "builtin:") {
			changes = append(changes, Change{name, jsonText(absolute(path)), first(name)})
		}
	}
	if s.Resume != "" && s.FirstInit != "" {
		changes = append(changes, Change{"init", jsonText(s.FirstInit), fromFlag})
	}
	if len(s.PluginData) > 0 {
		changes = append(changes, Change{pluginData, jsonText(absoluteFolders(s.PluginData)), first(pluginData)})
	}
	kept := *s
	kept.Pipeline = manifest.MapData(s.Pipeline, func(i manifest.StageInstance) map[string]string {
		return absoluteFolders(i.Data)
	})
	return yamlOf(&kept, first, changes)
}

// originOf finds a setting and its origin in a file of YAML.
var originOf = regexp.MustCompile(`(?m)^(\w+): .*  # (.+)$`)

// remember keeps the origins in the file of the run that continues.
func remember(s *Set, file []byte) {
	s.before, s.FirstInit = map[string]string{}, initIn(file)
	for _, m := range originOf.FindAllSubmatch(file, -1) {
		s.before[string(m[1])] = string(m[2])
	}
}

// takeOneGPU takes the first GPU of a run that trained on several, for a command that reads the run and computes on
// one.
func takeOneGPU(s *Set) {
	first, _, several := strings.Cut(string(s.ModelGPU), ",")
	if trains := s.ResumeFlag == "--resume"; several && !trains && fromRunFile(s, "model-gpu") {
		s.ModelGPU, s.DataGPU = GPU(first), cmp.Or(s.DataGPU, "cpu") // as the ranks of the run
	}
}

// Recorded reports whether the run that continues has a setting in its file that is not the default.
func Recorded(s *Set, name string) bool {
	was := s.before[key(name)]
	return was != "" && was != isDefault
}

// firstOrigin is the origin of a setting. If that is the file of the run that continues, it is the one which that file
// names.
func firstOrigin(s *Set, name string) string {
	if before := s.before[key(name)]; before != "" && fromRunFile(s, name) {
		return before
	}
	return origin(s, name)
}

// absolute leaves a path unchanged if the working directory has been removed.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
