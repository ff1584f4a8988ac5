package xttshost_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsAreReachable: README.md, or the README.md of its folder, links to each page of docs, so that a reader finds
// all of them by their questions.
func TestDocsAreReachable(t *testing.T) {
	all := pages(t)
	linked := linkedPages(all)
	for _, p := range all {
		if strings.HasPrefix(p.path, "docs/") && !linked[p.path] {
			t.Errorf("neither README.md nor a README.md of docs links to %s", p.path)
		}
	}
}

// linkedPages returns what README.md and the README.md of the folders of docs link to.
func linkedPages(all []page) map[string]bool {
	linked := map[string]bool{}
	for _, p := range all {
		if filepath.Base(p.path) == "README.md" && (p.path == "README.md" || strings.HasPrefix(p.path, "docs/")) {
			for _, target := range p.links() {
				file, _, _ := strings.Cut(target, "#")
				linked[filepath.Join(filepath.Dir(p.path), file)] = true
			}
		}
	}
	return linked
}

// namedPage is how messages, help, comments and scripts name a page: docs/runs.md, docs/gpu.md#numbers. Pages of ONNX,
// which some comments name, have capitals.
var namedPage = regexp.MustCompile(`\bdocs/(?:[a-z0-9/-]+|[a-z/]+/README)\.md(#[a-z0-9-]+)?`)

// TestNamedPagesExist: each page and heading that the program and the scripts name is there.
func TestNamedPagesExist(t *testing.T) {
	anchors := map[string][]string{}
	for _, p := range pages(t) {
		anchors[p.path] = p.anchors()
	}
	count := 0
	for _, ending := range []string{".go", ".py", ".sh", ".txt", ".js", ".yml", ".yaml", "Makefile"} {
		walk(t, ending, func(path string) {
			if path == "pages_test.go" || path == "docs_test.go" {
				return // they name pages that do not exist
			}
			for _, name := range namedPage.FindAllString(read(t, path), -1) {
				file, anchor, _ := strings.Cut(name, "#")
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s names %s, which does not exist", path, name)
				} else if anchor != "" && !slices.Contains(anchors[file], anchor) {
					t.Errorf("%s names %s: %s has no heading of that name", path, name, file)
				}
				count++
			}
		})
	}
	if count < 100 {
		t.Errorf("only %d names of pages were found", count)
	}
}

// TestNamedTestsExist: so is each Go test that a page names, such as the one that finds a planted fault.
func TestNamedTestsExist(t *testing.T) {
	have := map[string]bool{}
	test := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	walk(t, "_test.go", func(path string) {
		for _, m := range test.FindAllStringSubmatch(read(t, path), -1) {
			have[m[1]] = true
		}
	})
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`")
	for _, p := range pages(t) {
		if p.path == "CHANGELOG.md" {
			continue // names the tests of its time
		}
		for _, m := range named.FindAllStringSubmatch(strings.Join(p.lines, "\n"), -1) {
			if !have[m[1]] {
				t.Errorf("%s names %s, and there is no such test", p.path, m[1])
			}
		}
	}
}

// foreignFlags are flags of other programs: podman, docker, torchrun, Slurm, wandb.
const foreignFlags = " --gpus --master-port --max-restarts --network --nnodes --no-python --ntasks --pid --read-only " +
	"--requeue --shm-size --signal --sync-tensorboard --tmpfs "

// TestNamedFlagsExist: a flag in a sentence or a table is one of xtts-host, of a script or of another program. Command
// lines are parsed in package cli.
func TestNamedFlagsExist(t *testing.T) {
	have := map[string]bool{}
	flag := regexp.MustCompile(`--[a-z][a-z0-9-]+`)
	for _, name := range flag.FindAllString(read(t, "docs/commands.md")+foreignFlags, -1) {
		have[name] = true
	}
	for _, ending := range []string{".py", ".sh"} {
		walk(t, ending, func(path string) {
			if strings.HasPrefix(path, "scripts/") {
				for _, name := range flag.FindAllString(read(t, path), -1) {
					have[name] = true
				}
			}
		})
	}
	named := regexp.MustCompile("`(--[a-z][a-z0-9-]+)")
	for _, p := range pages(t) {
		if !strings.HasPrefix(p.path, "docs/") {
			continue
		}
		for i, line := range p.lines {
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				if !have[m[1]] {
					t.Errorf("%s:%d names %s, which no program has", p.path, i+1, m[1])
				}
			}
		}
	}
}

// keyPages are the pages that specify every key of the JSON that packages write.
var keyPages = map[string]string{
	"docs/report.md docs/groups.md": "host/observe/report",
	"docs/data-check.md":            "host/command/datacheck",
	"docs/doctor.md":                "host/command/doctor",
	"docs/validate.md":              "host/command/validate",
	"docs/nan.md":                   "host/run/nans host/train/nantrace",
	"docs/step.md":                  "host/command/replay",
	"docs/runs.md":                  "host/command/runs",
	"docs/torture.md":               "host/observe/debug",
	"docs/schedules.md":             "host/command/evaluate",
}

// TestPagesHaveTheirKeys: a key that a package writes is on the page of its files.
func TestPagesHaveTheirKeys(t *testing.T) {
	key := regexp.MustCompile("json:\"(\\w+)")
	for names, folders := range keyPages {
		var page strings.Builder
		for name := range strings.FieldsSeq(names) {
			page.WriteString(read(t, name))
		}
		count := 0
		for folder := range strings.FieldsSeq(folders) {
			walk(t, ".go", func(path string) {
				if filepath.Dir(path) != folder || isTest(path) {
					return
				}
				for _, m := range key.FindAllStringSubmatch(read(t, path), -1) {
					if count++; !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(page.String()) {
						t.Errorf("%s has the key %s, which is not in %s", path, m[1], names)
					}
				}
			})
		}
		if count == 0 {
			t.Errorf("%s has no keys", folders)
		}
	}
}

// TestPagesAreReadAsMeant keeps the checks above from passing for want of anything to check.
func TestPagesAreReadAsMeant(t *testing.T) {
	linked := linkedPages([]page{
		newPage("README.md", "[a](docs/a.md#x)"), newPage("docs/fa/README.md", "[b](b.md)"),
		newPage("plugins/README.md", "[c](../docs/c.md)"), newPage("docs/a.md", "[d](d.md)"),
	})
	if len(linked) != 2 || !linked["docs/a.md"] || !linked["docs/fa/b.md"] {
		t.Errorf("linked are %v", linked)
	}
	got := namedPage.FindAllString(`hint: "docs/gpu.md#numbers", see docs/fa/report.md.`, -1)
	if want := []string{"docs/gpu.md#numbers", "docs/fa/report.md"}; !slices.Equal(got, want) {
		t.Errorf("named are %q, want %q", got, want)
	}
}
