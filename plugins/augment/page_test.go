package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

var update = flag.Bool("update", false, "write docs/augmentation-settings.md")

// TestSettingsPage: docs/augmentation-settings.md has the comment of each stage's package, and the settings of
// plugin.json.
func TestSettingsPage(t *testing.T) {
	const golden = "../../docs/augmentation-settings.md"
	data, err := os.ReadFile("plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	declared, err := manifest.ParsePlugin("plugin.json", data)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(declared.Stages, func(a, b manifest.Stage) int { return strings.Compare(a.Name, b.Name) })
	var page strings.Builder
	page.WriteString("# Settings of the included augmentations\n\nWhat each stage of the plugin `augment` computes, " +
		"and the keys of its configuration.\n[augmentations.md](augmentations.md) says what they are for. This page " +
		"is generated: `make generate` writes it.\n\n" + wrapped("The host rejects a waveform with a sample "+
		"beyond 8. So a stage of waveforms scales a row with a larger peak to a peak of 8, and reports the change of "+
		"its level in dB as `limit_db`. A ratio of -60 dB or a gain of 24 dB can need it."))
	for _, s := range declared.Stages {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n%s", s.Name, comment(t, s.Name), settings(t, s))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(page.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if page.String() != string(want) {
		t.Errorf("%s does not have the comments and settings of the stages: make generate writes it", golden)
	}
}

// comment returns the comment of a stage's package, in lines of 120 columns.
func comment(t *testing.T, name string) string {
	t.Helper()
	files, err := filepath.Glob(name + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if file.Doc == nil {
			continue
		}
		start := fmt.Sprintf("Package %s implements the stage %[1]q, which ", name)
		text, found := strings.CutPrefix(file.Doc.Text(), start)
		if !found {
			t.Fatalf("the comment of package %s begins otherwise: %s", name, text)
		}
		var out strings.Builder
		for i, paragraph := range strings.Split("It "+text, "\n\n") {
			if i > 0 {
				out.WriteString("\n")
			}
			out.WriteString(wrapped(paragraph))
		}
		return out.String()
	}
	t.Fatalf("package %s has no comment", name)
	return ""
}

func wrapped(text string) string {
	var out strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		if i > 0 && width+1+len(word) > 120 {
			out.WriteString("\n")
			width = 0
		} else if i > 0 {
			out.WriteString(" ")
			width++
		}
		out.WriteString(word)
		width += len(word)
	}
	return out.String() + "\n"
}

// settings returns the table of the configuration, in the order of plugin.json, and the data folders.
func settings(t *testing.T, s manifest.Stage) string {
	t.Helper()
	var out strings.Builder
	for _, name := range s.DataNames() {
		fmt.Fprintf(&out, "The data folder `%s` has the %s.\n\n", name, s.Data[name].Description)
	}
	if s.MaxGrowth > 1 {
		fmt.Fprintf(&out, "A row becomes at most 1/`%s` times as long.\n\n", s.GrowthKey)
	}
	out.WriteString("| key | default | values | meaning |\n|---|---|---|---|\n")
	for _, key := range keys(t, s.Name) {
		p := s.Config["properties"].(map[string]any)[key].(map[string]any)
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", key, text(t, p["default"]), values(t, p), p["description"])
	}
	return out.String()
}

// values are those that a key may have.
func values(t *testing.T, p map[string]any) string {
	t.Helper()
	items, _ := p["items"].(map[string]any)
	switch {
	case p["enum"] != nil:
		return text(t, p["enum"])
	case items != nil:
		return "list of " + text(t, items["enum"])
	case p["type"] == "boolean":
		return "true, false"
	}
	kind := ""
	if p["type"] == "integer" {
		kind = ", whole"
	}
	return fmt.Sprintf("%s to %s%s", text(t, p["minimum"]), text(t, p["maximum"]), kind)
}

// text is a value as in JSON, a list without its brackets.
func text(t *testing.T, v any) string {
	t.Helper()
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var parts []string
	for _, x := range list {
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, strings.Trim(string(b), `"`))
	}
	return strings.Join(parts, ", ")
}

// keys are those of a stage's configuration in the order of plugin.json, in which each has a line.
func keys(t *testing.T, name string) (all []string) {
	t.Helper()
	data, err := os.ReadFile("plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), fmt.Sprintf("%q: %q", "name", name)+",\n      \"kind\"")
	_, rest, _ = strings.Cut(rest, "\"properties\": {\n")
	rest, _, _ = strings.Cut(rest, "\n        }")
	for line := range strings.Lines(rest) {
		all = append(all, strings.Split(line, `"`)[1])
	}
	return all
}
