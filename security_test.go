package xttshost_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// heldBy finds the brackets in SECURITY.md that name tests: [`visible.TestText`, `foreign-text`].
var heldBy = regexp.MustCompile("\\[(`[\\w.-]+`(?:,\\s+`[\\w.-]+`)*)\\]")

// TestPromisesAreHeld: each test and case that SECURITY.md names exists.
func TestPromisesAreHeld(t *testing.T) {
	page := read(t, "SECURITY.md")
	have := map[string]bool{}
	inPackage := regexp.MustCompile(`(?m)^package (\w+?)(?:_test)?$`)
	add := func(path string, of *regexp.Regexp) {
		text := read(t, path)
		for _, m := range of.FindAllStringSubmatch(text, -1) {
			name := m[1]
			if p := inPackage.FindStringSubmatch(text); p != nil {
				name = p[1] + "." + name // several packages have a test of one name
			}
			have[name] = true
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
	for _, point := range unheld(page) {
		t.Errorf("SECURITY.md does not name what holds a point, nor [no test]: %s", point)
	}
	promises := heldBy.FindAllStringSubmatch(page, -1)
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

// unheld returns the points of lists without brackets, unless the line above their list has them.
func unheld(page string) (points []string) {
	held := func(text string) bool {
		return heldBy.MatchString(text) || strings.Contains(strings.Join(strings.Fields(text), " "), "[no test]")
	}
	above := false
	for paragraph := range strings.SplitSeq(page, "\n\n") {
		list := strings.Split("\n"+paragraph, "\n- ")
		for _, point := range list[1:] {
			if !above && !held(point) {
				points = append(points, point)
			}
		}
		above = held(paragraph) && len(list) == 1
	}
	return points
}

// TestUnheld: a point without brackets is found, also in a list where others have them.
func TestUnheld(t *testing.T) {
	page := "Rules.\n\n- a [`b.TestC`]\n- d\n- e [no test]\n\nHeld. [`b.TestC`]\n\n- f\n\n- g\n"
	if got := unheld(page); len(got) != 2 || got[0] != "d" || got[1] != "g\n" {
		t.Errorf("%q", got)
	}
}
