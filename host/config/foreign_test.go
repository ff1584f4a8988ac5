package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const halfPrecision = "--precision bf16 trains in bf16 with f32 master weights, on a GPU and with a bundle that has a bf16 graph; " +
	"there is no fp16 and no loss scaling (docs/gpu.md#numbers)"

// TestForeignNames: no name of foreign.txt is a flag, there once, and every flag, page and section of an answer exists.
func TestForeignNames(t *testing.T) {
	flags := New().flags
	words := strings.Fields(regexp.MustCompile(`(?m)^(#|  ).*$`).ReplaceAllString(foreignText, ""))
	if len(words) != len(foreign()) || len(words) < 250 {
		t.Errorf("%d names, %d differ", len(words), len(foreign()))
	}
	for name, answer := range foreign() {
		if flags.Lookup(name) != nil || answer == "" || strings.Contains(name, "_") {
			t.Errorf("%s: %s", name, answer)
		}
		for _, flag := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(answer, -1) {
			if flags.Lookup(flag[1]) == nil {
				t.Errorf("%s: there is no --%s", name, flag[1])
			}
		}
		for _, page := range regexp.MustCompile(`(docs/[\w./-]+\w)(?:#([\w-]+))?`).FindAllStringSubmatch(answer, -1) {
			text, err := os.ReadFile(filepath.Join("../..", page[1]))
			heading := regexp.MustCompile(`(?mi)^#+ ` + strings.ReplaceAll(page[2], "-", ".") + `$`)
			if err != nil || page[2] != "" && !heading.Match(text) {
				t.Errorf("%s: %v: no %s", name, err, page[0])
			}
		}
	}
}

// TestForeignHints: whatever case, underscores and sections it has. A name that has no flag here is not answered with one.
func TestForeignHints(t *testing.T) {
	all := func(flag string) bool { return flag != "nothing" && New().flags.Lookup(flag) != nil }
	none := func(string) bool { return false }
	for _, c := range []struct {
		typed string
		known func(string) bool
		want  string
	}{
		{"Learning_Rate", all, "did you mean <lr>?"}, {"model.optim.lr", all, "did you mean <lr>?"}, {"+trainer.max_steps", all, "did you mean <max-steps>?"},
		{"trainer.max_epochs", all, "did you mean <epochs>?"}, {"no-tensorboard", all, foreign()["tensorboard"]}, {"learning-rate", none, ""},
		{"frobnicate", all, ""}, {"a.b", all, ""}, {"", all, ""}, {".", all, ""}, {"fp16", all, halfPrecision},
	} {
		if got := ForeignHint(c.typed, c.known, func(flag string) string { return "<" + flag + ">" }); got != c.want {
			t.Errorf("%s: %q, want %q", c.typed, got, c.want)
		}
	}
}
