package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// line is the arguments of a command in the documentation.
type line struct {
	words []string
	named bool // in a sentence, which need not name the arguments
}

func (l line) String() string { return "xtts-host " + strings.Join(l.words, " ") }

// parse reads a command line as Run does, without running it.
func (l line) parse() error {
	cmd, rest, err := New().Find(l.words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if l.named && len(cmd.Flags().Args()) == 0 {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

var (
	block    = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	span     = regexp.MustCompile("`([^`]+)`")
	comment  = regexp.MustCompile(`(^|\s)#.*`)
	operator = regexp.MustCompile(`&&|\|\||[|;<>()]`)
)

// commandLines returns every command line of xtts-host in a page: in code blocks for the shell, and in code spans,
// where a word in capitals stands for a value.
func commandLines(page string) (found []line) {
	for _, b := range block.FindAllStringSubmatch(page, -1) {
		if b[1] == "sh" {
			for text := range strings.Lines(strings.ReplaceAll(b[2], "\\\n", " ")) {
				found = append(found, commands(text, false)...)
			}
		}
	}
	for _, s := range span.FindAllStringSubmatch(block.ReplaceAllString(page, ""), -1) {
		found = append(found, commands(s[1], true)...)
	}
	return found
}

// word is a word of the shell, which may have quoted parts.
var word = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`)

// commands returns the command lines of xtts-host in a line of the shell.
func commands(text string, named bool) (found []line) {
	for _, command := range operator.Split(comment.ReplaceAllString(text, ""), -1) {
		words := word.FindAllString(command, -1)
		for len(words) > 0 && strings.Contains(words[0], "=") {
			words = words[1:] // a variable of the environment
		}
		if len(words) > 0 && filepath.Base(words[0]) == "xtts-host" {
			found = append(found, line{words[1:], named})
		}
	}
	return found
}

// TestDocsShowCommandsThatExist parses every command line of the documentation.
func TestDocsShowCommandsThatExist(t *testing.T) {
	count := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && len(d.Name()) > 2 && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, line := range commandLines(string(text)) {
			count++
			if err := line.parse(); err != nil {
				t.Errorf("%s: %s: %v", strings.TrimPrefix(path, "../../../"), line, err)
			}
		}
		return err
	})
	if err != nil || count < 20 {
		t.Errorf("%d command lines were found: %v", count, err)
	}
}

// TestExamplesParse: so do the examples of the help.
func TestExamplesParse(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, line := range commandLines("```sh\n" + cmd.Example + "\n```\n") {
			if err := line.parse(); err != nil {
				t.Errorf("help of %s: %s: %v", cmd.CommandPath(), line, err)
			}
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(New())
}

func TestCommandLines(t *testing.T) {
	page := "Say `xtts-host bench --json FILE`, not `host bench`.\n```sh\nmake build && A=1 bin/xtts-host graph \\\n" +
		"  lint b | head # xtts-host x\n```\n```\nxtts-host y\n```\n"
	var got []string
	for _, line := range commandLines(page) {
		got = append(got, line.String())
	}
	if want := []string{"xtts-host graph lint b", "xtts-host bench --json FILE"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	for _, wrong := range []string{
		"--bach-size 3", "tran", "graph lnt b", "graph lint", "--batch-size many", "doctor x",
	} {
		if (line{words: strings.Fields(wrong)}).parse() == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
