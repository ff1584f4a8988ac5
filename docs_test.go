package xttshost_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// docColumns is the width of a line of documentation. Three kinds of lines may be longer: a row of a table, data in a
// code block (JSON, or what a program prints), and a line that is one word, such as a link.
const docColumns = 120

// page is a Markdown file, line by line.
type page struct {
	path  string
	lines []string
	block []string // of each line: the language of its code block, "text" without one, empty outside
}

func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	walk(t, ".md", func(path string) {
		all = append(all, newPage(path, read(t, path)))
	})
	return all
}

func newPage(path, text string) page {
	p := page{path: path, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	block := ""
	for _, line := range p.lines {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && block == "":
			p.block, block = append(p.block, ""), "text"
			if language != "" {
				block = language
			}
		case fence:
			p.block, block = append(p.block, ""), ""
		default:
			p.block = append(p.block, block)
		}
	}
	return p
}

func TestDocLinesFit(t *testing.T) {
	for _, p := range pages(t) {
		for _, n := range p.tooWide() {
			t.Errorf("%s:%d is wider than %d columns", p.path, n, docColumns)
		}
	}
}

// tooWide returns the numbers of the lines that are.
func (p page) tooWide() (numbers []int) {
	for i, line := range p.lines {
		text := strings.TrimSpace(line)
		free := p.block[i] == "json" || p.block[i] == "text" || strings.HasPrefix(text, "|") ||
			!strings.Contains(strings.TrimPrefix(text, "- "), " ")
		if utf8.RuneCountInString(line) > docColumns && !free {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan = regexp.MustCompile("`[^`]*`")
)

// TestDocLinks follows the links between files of this repository, down to the heading.
func TestDocLinks(t *testing.T) {
	anchors := map[string][]string{}
	all := pages(t)
	for _, p := range all {
		anchors[p.path] = p.anchors()
	}
	for _, p := range all {
		for _, target := range p.links() {
			file, anchor, _ := strings.Cut(target, "#")
			at := p.path
			if file != "" {
				at = filepath.Join(filepath.Dir(p.path), file)
			}
			if _, err := os.Stat(at); err != nil {
				t.Errorf("%s links to %s, which does not exist", p.path, target)
			} else if anchor != "" && !slices.Contains(anchors[at], anchor) {
				t.Errorf("%s links to %s: %s has no heading of that name", p.path, target, at)
			}
		}
	}
}

// links returns the links that lead into this repository. A link may be broken between the words of its text.
func (p page) links() (targets []string) {
	var prose strings.Builder
	for i, line := range p.lines {
		if p.block[i] == "" {
			prose.WriteString(line + "\n")
		}
	}
	for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(prose.String(), ""), -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			targets = append(targets, m[1])
		}
	}
	return targets
}

// anchors names the headings as GitHub does: small letters, no punctuation, hyphens for spaces, numbered where they
// repeat.
func (p page) anchors() (names []string) {
	seen := map[string]int{}
	for i, line := range p.lines {
		title := strings.TrimLeft(line, "#")
		if p.block[i] != "" || title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		title = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(strings.TrimSpace(title), "$1")
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		if n := seen[name]; n > 0 {
			names = append(names, fmt.Sprintf("%s-%d", name, n))
		} else {
			names = append(names, name)
		}
		seen[name]++
	}
	return names
}

// TestDocsNameWhatExists: targets of make and scripts, in code blocks and in code spans. The program's own commands are
// tested in the folder of the program.
func TestDocsNameWhatExists(t *testing.T) {
	// A new plugin in Python has targets of its own.
	makefile := read(t, "Makefile") + read(t, "host/command/newplugin/template/python/Makefile")
	var code = regexp.MustCompile("`[^`]+`")
	var script = regexp.MustCompile(`(?:^|[\s"])(scripts/[\w/-]+\.(?:sh|py))`)
	for _, p := range pages(t) {
		root := !strings.HasPrefix(p.path, "plugins/") // a plugin has a Makefile of its own
		for i, line := range p.lines {
			commands := []string{line}
			if p.block[i] != "sh" {
				commands = code.FindAllString(line, -1)
			}
			for _, command := range commands {
				command = strings.Trim(command, "`")
				target, ok := makeTarget(command)
				if ok && root && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).MatchString(makefile) {
					t.Errorf("%s:%d: the Makefile has no target %s", p.path, i+1, target)
				}
				for _, m := range script.FindAllStringSubmatch(command, -1) {
					if _, err := os.Stat(m[1]); err != nil {
						t.Errorf("%s:%d: there is no %s", p.path, i+1, m[1])
					}
				}
			}
		}
	}
}

// makeTarget returns the target of a command "make TARGET" in the root of the repository.
func makeTarget(command string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(command), "make ")
	if !ok {
		return "", false
	}
	for word := range strings.FieldsSeq(rest) {
		if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "#") {
			return "", false // in another folder, or no target at all
		}
		if !strings.Contains(word, "=") {
			return word, true
		}
	}
	return "", false
}

// TestDocsAreReadAsMeant keeps the checks above from passing for want of anything to check.
func TestDocsAreReadAsMeant(t *testing.T) {
	wide := strings.Repeat("word ", 30)
	p := newPage("a.md", strings.Join([]string{
		"# A `b`, and c!", "## Twice", "## Twice", wide, "| " + wide, "```json", wide, "# no heading", "```", "```sh",
		wide, "```", "- " + strings.Repeat("x", 130), "see [that",
		"page](b.md#twice-1), [there](https://example.org) and `[x](y)`",
	}, "\n"))
	if got, want := p.tooWide(), []int{4, 11}; !slices.Equal(got, want) {
		t.Errorf("too wide are lines %v, want %v", got, want)
	}
	if got, want := p.anchors(), []string{"a-b-and-c", "twice", "twice-1"}; !slices.Equal(got, want) {
		t.Errorf("anchors are %q, want %q", got, want)
	}
	if got, want := p.links(), []string{"b.md#twice-1"}; !slices.Equal(got, want) {
		t.Errorf("links are %q, want %q", got, want)
	}
	for command, want := range map[string]string{
		"make torture KILLS=2": "torture", "make CUDA=0 build  # why": "build", "make -C x y": "", "make": "",
	} {
		if got, _ := makeTarget(command); got != want {
			t.Errorf("the target of %q is %q, want %q", command, got, want)
		}
	}
}

// TestDocsCountParameters: the size of the embedded model is the one of its bundle.
func TestDocsCountParameters(t *testing.T) {
	var bundle struct {
		Parameters []struct{ Shape []int }
	}
	data := read(t, "ortgraphs/builtin/myxtts-nano/bundle.json")
	if err := json.Unmarshal([]byte(data), &bundle); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, p := range bundle.Parameters {
		values := 1
		for _, n := range p.Shape {
			values *= n
		}
		total += values
	}
	row := fmt.Sprintf("| `nano` | 96/1, none, 96/2 | %d,%03d |", total/1000, total%1000)
	page := read(t, "docs/export.md")
	if !strings.Contains(page, row) {
		t.Errorf("docs/export.md has no line %s", row)
	}
}

// TestDataFolderExamples: docs/plugin-reference.md shows the stage that a test of host/run trains with.
func TestDataFolderExamples(t *testing.T) {
	page := read(t, "docs/plugin-reference.md")
	for file, part := range map[string][2]string{
		"plugins/testdata/python/noise/plugin.py": {"class Noisy", "\n\n\nif __name__"},
		"plugins/testdata/noise/plugin.json":      {`      "name": "noise"`, "\n\x00"},
	} {
		_, code, found := strings.Cut(read(t, file)+"\x00", part[0])
		code, _, ends := strings.Cut(code, part[1])
		if !found || !ends || !strings.Contains(page, "\n"+part[0]+code+"\n```\n") {
			t.Errorf("docs/plugin-reference.md does not show %s as it is", file)
		}
	}
}
