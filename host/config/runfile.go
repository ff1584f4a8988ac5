package config

import (
	"path/filepath"
	"strings"
)

// paths are the settings that name a file or a folder.
var paths = []string{
	"plugins", "graph", "train-data", "val-data", "run-dir", "resume", "resume-or-start", "init", "ort-lib", "cache-dir", "debug-dir", "trace", "feature-cache", "samples",
}

// RunYAML returns the text of the config.yaml of a run: YAML with absolute paths, so that the run can be resumed from
// any working directory.
func (s *Set) RunYAML(changes ...Change) string {
	for _, name := range paths {
		if path := s.flags.Lookup(name).Value.String(); path != "" && !strings.HasPrefix(path, "builtin:") {
			changes = append(changes, Change{name, jsonText(absolute(path)), origin(s, name)})
		}
	}
	return s.YAML(changes...)
}

// absolute leaves a path unchanged if the working directory has been removed.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
