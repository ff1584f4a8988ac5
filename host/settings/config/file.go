package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/plain"
)

// pipelineKey is the one setting that has no flag: the list of stage instances, as in bundle.json.
const pipelineKey = "pipeline"

// key is the name of a flag in a config file.
func key(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// ofOneRun are settings that name a run. YAML writes them as comments, so that another run that reads the text does not
// use them.
var ofOneRun = map[string]bool{
	"run-dir": true, "resume": true, "resume-or-start": true, "allow": true, "init": true, "debug-dir": true,
	"trace": true, "metrics": true, "dashboard": true, "debug": true, "plugins-lock": true, "sandbox": true,
}

// isSetting reports whether a flag is a setting. Other flags select what to do with the settings.
func isSetting(f *pflag.Flag) bool { return f.Name != "config" && f.Name != "print-config" }

// maxFile limits a config file, in bytes. Parsing takes a second at most for any content.
const maxFile = 64 << 10

// readFile fills settings that flags and environment left open. JSON is YAML, so one parser reads both. It also reads a
// file that a run wrote (config.yaml).
func (s *Set) readFile(path string, read func(limit int64) ([]byte, error)) error {
	data, err := read(maxFile)
	if err != nil {
		return hint.Errorf("name a YAML or JSON file with settings; docs/config.schema.json lists them",
			"config file: %w", err)
	}
	if err := plain.Check(path, data); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	data = plain.Trim(data)
	text := data
	// With aliases, a few bytes can expand to any number of values, and a list of settings needs none.
	for _, t := range lexer.Tokenize(string(data)) {
		if t.Type == token.AnchorType || t.Type == token.AliasType {
			return fmt.Errorf("%s:%d: anchors and aliases (%s) are not supported", path, t.Position.Line, t.Value)
		}
	}
	var content any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return hint.Errorf(eachLine, "%w", atLine(path, err))
	}
	if content == nil {
		return nil
	}
	if _, ok := content.(map[string]any); !ok {
		return hint.Errorf(eachLine, "%s: there is no setting in it", path)
	}
	if err := s.checkKeys(content); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := s.numbers(content); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if data, err = json.Marshal(content); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	doc, err := manifest.Decode(path, schemaOf(s, false), data)
	if err != nil {
		return hint.Errorf(cmp.Or(hint.Of(err), "docs/config.schema.json has every key and its type"), "%w", err)
	}
	if s.Resume != "" && path == runFile(s) {
		remember(s, text)
	}
	var file struct{ Pipeline []manifest.StageInstance }
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := manifest.CheckPipeline(file.Pipeline); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if file.Pipeline != nil && s.Pipeline == nil {
		s.Pipeline, s.PipelineFile = file.Pipeline, path
		s.origins[pipelineKey] = path
	}
	return s.take(path, doc)
}

// take sets what the values of a file set.
func (s *Set) take(path string, doc map[string]any) (err error) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		v, ok := doc[key(f.Name)]
		if ok && f.Name == pluginData && err == nil {
			if e := s.addFolders(v, path); e != nil {
				err = fmt.Errorf("%s: %s: %w", path, key(f.Name), e)
			}
			return
		}
		if !ok || !s.open(f, path) || err != nil {
			return
		}
		if e := setValue(f, v); e != nil {
			err = fmt.Errorf("%s: %s: %w", path, key(f.Name), reason(f, e))
		}
		s.origins[f.Name] = path
	})
	return err
}

// PipelineOf returns the pipeline in a file of settings, such as --config takes. One without stages is refused, though
// a run may have none.
func PipelineOf(path string) ([]manifest.StageInstance, error) {
	s := New()
	if err := s.readFile(path, files.At(path).Read); err != nil {
		return nil, err
	}
	if len(s.Pipeline) == 0 {
		return nil, hint.Errorf("a pipeline is a list of stages: docs/plugins.md, Configure it",
			"%s has no stages in %q", path, pipelineKey)
	}
	return s.Pipeline, nil
}

const eachLine = "a setting is a line such as batch_size: 16; docs/config.schema.json has every key and its type"

// atLine names the place of a fault in a file as other errors do. The parser's text has it in brackets, and the lines
// around it.
func atLine(path string, err error) error {
	var fault yaml.Error
	if !errors.As(err, &fault) || fault.GetToken() == nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	at := fault.GetToken().Position
	return fmt.Errorf("%s:%d:%d: %s", path, at.Line, at.Column, fault.GetMessage())
}

// checkKeys refuses an unknown key and names a similar one.
func (s *Set) checkKeys(content any) error {
	members, _ := content.(map[string]any)
	keys := []string{pipelineKey}
	s.flags.VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			keys = append(keys, key(f.Name))
		}
	})
	for _, typed := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(keys, typed) {
			return hint.Errorf(unknownName(s.flags, typed, typed, keys, key), "unknown key %q", typed)
		}
	}
	return nil
}

// numbers converts texts such as 1e-4 to numbers where a number is expected: the parser follows YAML 1.1, in which a
// float has a point. Users omit it, and so does Set.YAML. It refuses a text that was meant for a number, such as 5%.
func (s *Set) numbers(content any) (err error) {
	members, _ := content.(map[string]any)
	s.flags.VisitAll(func(f *pflag.Flag) {
		if text, ok := members[key(f.Name)].(string); ok && f.Value.Type() == "float64" {
			if v, bad := strconv.ParseFloat(text, 64); bad == nil {
				members[key(f.Name)] = v
			} else if e := notNumber(f, text); hint.Of(e) != "" && err == nil {
				err = fmt.Errorf("%s: %s: %w", key(f.Name), text, e)
			}
		}
	})
	return err
}

// setValue sets a flag to a value of the file.
func setValue(f *pflag.Flag, v any) error {
	switch v := v.(type) {
	case []any:
		list := make([]string, len(v))
		for i, e := range v {
			list[i] = fmt.Sprint(e)
		}
		return f.Value.(pflag.SliceValue).Replace(list)
	case map[string]any:
		for name, e := range v {
			if err := f.Value.Set(fmt.Sprintf("%s=%v", name, e)); err != nil {
				return err
			}
		}
		return nil
	}
	return f.Value.Set(fmt.Sprint(v))
}

// Change is a setting whose value differs from the given one.
type Change struct{ Name, Value, Origin string }

// YAML returns every setting with its origin as a comment, in the order of the help. Read as a config file it gives the
// same settings, except what is of the run itself (run_dir, resume, allow, init, debug, debug_dir, trace, metrics,
// dashboard, plugins_lock, sandbox), which are comments.
func (s *Set) YAML(changes ...Change) string {
	return yamlOf(s, func(name string) string { return origin(s, name) }, changes)
}

// yamlOf is YAML with a function that returns the origin of a setting.
func yamlOf(s *Set, origin func(name string) string, changes []Change) string {
	var out strings.Builder
	for _, g := range s.groups {
		fmt.Fprintf(&out, "# %s\n", g.Title)
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if ofOneRun[f.Name] {
				out.WriteString("# ")
			}
			value, from := valueText(f), origin(f.Name)
			if i := slices.IndexFunc(changes, func(c Change) bool { return c.Name == f.Name }); i >= 0 {
				value, from = changes[i].Value, changes[i].Origin
			}
			if isSetting(f) {
				fmt.Fprintf(&out, "%s: %s  # %s\n", key(f.Name), value, visible.Text(from))
			}
		})
	}
	if s.Pipeline != nil {
		fmt.Fprintf(&out, "# Stages\n%s: %s  # %s\n", pipelineKey, jsonText(s.Pipeline),
			visible.Text(origin(pipelineKey)))
	}
	return out.String()
}

func origin(s *Set, name string) string { return cmp.Or(s.origins[name], isDefault) }

// valueText formats a value as YAML. A value that is not a number, a word or a list of these is written as JSON, which
// is YAML too.
func valueText(f *pflag.Flag) string {
	switch v := f.Value.(type) {
	case pflag.SliceValue:
		return jsonText(append([]string{}, v.GetSlice()...))
	case *workers:
		if len(*v) == 0 {
			return "{}" // as JSON, a nil map is null
		}
		return jsonText(*v)
	case *folders:
		if len(*v) == 0 {
			return "{}"
		}
		return jsonText(*v)
	}
	if t := f.Value.Type(); Choices(f.Name) != nil || t == "string" || t == "gpu" || t == "buckets" || t == "rules" {
		return jsonText(f.Value.String())
	}
	return f.Value.String()
}

func jsonText(v any) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // users read it
	if err := enc.Encode(v); err != nil {
		panic(err) // plain data
	}
	return visible.Text(strings.TrimSuffix(out.String(), "\n")) // its escapes are those of YAML, too
}

// Schema returns the JSON Schema of a config file, made of the flags: docs/config.schema.json is its text.
func (s *Set) Schema() map[string]any { return schemaOf(s, true) }

// schemaOf is Schema with or without the ranges of numbers, which Check refuses with a better message.
func schemaOf(s *Set, ranges bool) map[string]any {
	properties := map[string]any{pipelineKey: map[string]any{
		"type": "array", "description": "stages and groups of stages in order, as in bundle.json; " +
			"replaces the bundle's",
		"items": entrySchema(ranges, false),
	}}
	s.flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		p := map[string]any{"description": usage}
		kind := f.Value.Type()
		if Choices(f.Name) != nil {
			kind = "string"
		}
		switch kind {
		case "int", "int64":
			p["type"] = "integer"
		case "float64":
			p["type"] = "number"
		case "bool":
			p["type"] = "boolean"
		case "string", "rules":
			p["type"] = "string"
		case "stringSlice":
			p["type"] = "array"
			p["items"] = map[string]any{"type": "string"}
		case "ID=N":
			p["type"] = []any{"object", "string"}
			p["additionalProperties"] = map[string]any{"type": "integer", "minimum": 1, "maximum": maxWorkers}
		case "NAME=DIR":
			p["type"] = []any{"object", "string"}
			p["additionalProperties"] = map[string]any{"type": "string", "minLength": 1}
		default: // amounts of memory, slots, GPUs
			p["type"] = []any{"integer", "string"}
		}
		if b, ok := bounds[f.Name]; ok && ranges {
			p["minimum"], p["maximum"] = b.min, b.max
			if b.min == -rate { // a smaller rate than 0 has a message of its own
				p["minimum"] = 0
			}
		}
		properties[key(f.Name)] = p
	})
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "config file of xtts-host",
		"type": "object", "additionalProperties": false, "properties": properties,
	}
}
