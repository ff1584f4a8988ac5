package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// pipelineKey is the one setting that has no flag: the list of stage instances, as in bundle.json.
const pipelineKey = "pipeline"

// key is the name of a flag in a config file.
func key(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// ofOneRun are settings that name a run; another run does not take them over from a file.
var ofOneRun = map[string]bool{"run-dir": true, "resume": true, "init": true}

// isSetting tells settings from flags that only say what to do with them.
func isSetting(f *pflag.Flag) bool { return f.Name != "config" && f.Name != "print-config" }

// readFile fills what flags and environment left open. JSON is YAML, so one parser reads both. A file that a run wrote
// (config.yaml) can be read again.
func (s *Set) readFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(bytes.TrimSpace(data)) == 0 || bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil
	}
	doc, err := manifest.Decode(path, s.Schema(), data)
	if err != nil {
		return err
	}
	var file struct{ Pipeline []manifest.StageInstance }
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if file.Pipeline != nil && s.Pipeline == nil {
		s.Pipeline = file.Pipeline
		s.origins[pipelineKey] = path
	}
	s.flags.VisitAll(func(f *pflag.Flag) {
		v, ok := doc[key(f.Name)]
		if !ok || s.origins[f.Name] != "" || ofOneRun[f.Name] || err != nil {
			return
		}
		if e := f.Value.Set(text(v)); e != nil {
			err = fmt.Errorf("%s: %s: %w", path, key(f.Name), e)
		}
		s.origins[f.Name] = path
	})
	return err
}

// text writes a value of the file as a flag takes it.
func text(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = text(e)
		}
		return strings.Join(parts, ",")
	case map[string]any:
		parts := make([]string, 0, len(v))
		for k, e := range v {
			parts = append(parts, k+"="+text(e))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(v)
}

// Schema returns the JSON Schema of a config file, made of the flags: docs/config.schema.json is its text.
func (s *Set) Schema() map[string]any {
	properties := map[string]any{pipelineKey: map[string]any{
		"type": "array", "items": map[string]any{"type": "object"},
		"description": "stage instances in order, as in bundle.json; replaces the bundle's",
	}}
	s.flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		p := map[string]any{"description": usage}
		switch f.Value.Type() {
		case "int", "int64":
			p["type"] = "integer"
		case "float64":
			p["type"] = "number"
		case "bool":
			p["type"] = "boolean"
		case "string":
			p["type"] = "string"
		case "stringSlice":
			p["type"] = "array"
			p["items"] = map[string]any{"type": "string"}
		case "ID=N":
			p["type"] = []any{"object", "string"}
			p["additionalProperties"] = map[string]any{"type": "integer", "minimum": 1}
		default: // amounts of memory, slots
			p["type"] = []any{"integer", "string"}
		}
		properties[key(f.Name)] = p
	})
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "config file of xtts-host", "type": "object",
		"additionalProperties": false, "properties": properties,
	}
}
