package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const halfPrecision = "--precision bf16 trains in bf16 with f32 master weights, on a GPU and with a bundle that " +
	"has a " +
	"bf16 graph; " +
	"there is no fp16 and no loss scaling (docs/gpu.md#numbers)"

// TestForeignNames: no name of foreign.txt is a flag, there once, and every flag, page and section of an answer exists.
func TestForeignNames(t *testing.T) {
	flags := New().flags
	words := strings.Fields(regexp.MustCompile(`(?m)^(#|  ).*$`).ReplaceAllString(foreignText, ""))
	if len(words) != len(foreign()) || len(words) < 250 {
		t.Errorf("%d names, %d differ", len(words), len(foreign()))
	}
	// of synthesize, profile and bench
	others := []string{
		"run", "out", "speaker", "text", "text-file", "language", "temperature", "top-k", "top-p", "repetition-penalty",
		"num-steps", "bench-steps",
	}
	for name, a := range foreign() {
		if flags.Lookup(name) != nil || len(a.flags) == 0 && a.text == "" || strings.Contains(name, "_") ||
			name != strings.ToLower(name) {
			t.Errorf("%s: %v", name, a)
		}
		answer := strings.Join(a.flags, " ") + " " + a.text
		for _, flag := range append(a.flags, matches(`--([a-z][a-z-]*)`, a.text)...) {
			if flags.Lookup(flag) == nil && !slices.Contains(others, flag) {
				t.Errorf("%s: there is no --%s", name, flag)
			}
		}
		if !slices.ContainsFunc(a.flags, func(flag string) bool { return flags.Lookup(flag) != nil }) && a.text == "" {
			t.Errorf("%s has no answer where a run is trained", name)
		}
		for _, page := range regexp.MustCompile(`(docs/[\w./-]+\w)(?:#([\w-]+))?`).FindAllStringSubmatch(answer, -1) {
			text, err := os.ReadFile(filepath.Join("../../..", page[1]))
			heading := regexp.MustCompile(`(?mi)^#+ ` + strings.ReplaceAll(page[2], "-", ".") + `$`)
			if err != nil || page[2] != "" && !heading.Match(text) {
				t.Errorf("%s: %v: no %s", name, err, page[0])
			}
		}
	}
}

func matches(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// TestForeignHints: whatever case, underscores and sections it has. A name that has no flag here is not answered with
// one.
func TestForeignHints(t *testing.T) {
	all := func(flag string) bool { return flag != "nothing" && New().flags.Lookup(flag) != nil }
	none := func(string) bool { return false }
	for _, c := range []struct {
		typed string
		known func(string) bool
		want  string
	}{
		{"Learning_Rate", all, "did you mean <lr>?"}, {"model.optim.lr", all, "did you mean <lr>?"},
		{"+trainer.max_steps", all, "did you mean <max-steps>?"}, {"trainer.max_epochs", all, "did you mean <epochs>?"},
		{"no-tensorboard", all, foreign()["tensorboard"].text}, {"learning-rate", none, ""},
		{"speaker_wav", func(flag string) bool { return flag == "speaker" }, "did you mean <speaker>?"},
		{"speaker_wav", all, foreign()["speaker-wav"].text}, {"frobnicate", all, ""}, {"a.b", all, ""}, {"", all, ""},
		{".", all, ""}, {"fp16", all, halfPrecision},
	} {
		if got := ForeignHint(c.typed, c.known, func(flag string) string { return "<" + flag + ">" }); got != c.want {
			t.Errorf("%s: %q, want %q", c.typed, got, c.want)
		}
	}
}
