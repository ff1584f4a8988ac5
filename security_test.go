package xttshost_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// heldBy finds the brackets in SECURITY.md that name tests: [`TestText`, `foreign-text`].
var heldBy = regexp.MustCompile("\\[(`[\\w-]+`(?:,\\s+`[\\w-]+`)*)\\]")

// TestPromisesAreHeld: each test and case that SECURITY.md names exists.
func TestPromisesAreHeld(t *testing.T) {
	page, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	add := func(path string, of *regexp.Regexp) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range of.FindAllSubmatch(text, -1) {
			have[string(m[1])] = true
		}
	}
	tests := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	walk(t, "_test.go", func(path string) { add(path, tests) })
	cases, err := filepath.Glob("scripts/findings/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cases {
		add(path, regexp.MustCompile(`(?m)^# ([a-z0-9-]+): `))
	}
	promises := heldBy.FindAllStringSubmatch(string(page), -1)
	if len(promises) < 25 {
		t.Errorf("%d promises name what holds them", len(promises))
	}
	for _, p := range promises {
		for _, name := range strings.Split(p[1], ",") {
			if name = strings.Trim(name, "` \n"); !have[name] {
				t.Errorf("SECURITY.md names %s, and there is no such test or case", name)
			}
		}
	}
}
