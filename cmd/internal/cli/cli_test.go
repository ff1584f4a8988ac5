package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

var update = flag.Bool("update", false, "regenerate docs/commands.md")

// all returns a command and all below it that people see.
func all(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, all(c)...)
		}
	}
	return list
}

func TestHelpFits(t *testing.T) {
	for _, cmd := range all(New()) {
		help := Help(cmd, widest)
		for line := range strings.Lines(help) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widest {
				t.Errorf("help of %s: %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		if !strings.Contains(help, "\nUsage:\n  "+cmd.CommandPath()) {
			t.Errorf("help of %s has no usage:\n%s", cmd.CommandPath(), help)
		}
		if strings.Contains(help, "(default )") {
			t.Errorf("help of %s shows a default without a value", cmd.CommandPath())
		}
		if cmd.Example == "" && cmd.HasLocalFlags() && !cmd.HasAvailableSubCommands() && cmd.Name() != "version" {
			t.Errorf("help of %s has no example", cmd.CommandPath())
		}
	}
}

// TestEveryFlagIsInTheHelp: once, in the help of its command or in that of train.
func TestEveryFlagIsInTheHelp(t *testing.T) {
	root := New()
	train, _, err := root.Find([]string{"train"})
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range all(root) {
		help := Help(cmd, widest)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			text := help
			if f.Annotations[groupAnnotation] != nil && !listsSettings(cmd) {
				text = Help(train, widest)
			}
			if n := strings.Count(text, " --"+f.Name+" "); n < 1 {
				t.Errorf("--%s of %s is in the help %d times", f.Name, cmd.CommandPath(), n)
			}
		})
	}
}

// TestFlagsOfOneCommand: what only one command takes is not known to the others. Some flags mean the same in several.
func TestFlagsOfOneCommand(t *testing.T) {
	settings := map[string]bool{}
	for _, g := range config.New().Groups() {
		g.Flags.VisitAll(func(f *pflag.Flag) { settings[f.Name] = true })
	}
	shared := []string{"json", "help", "run", "out", "clip", "stage", "step", "epoch", "pipeline"}
	owner := map[string]string{}
	for _, cmd := range all(New()) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if settings[f.Name] || slices.Contains(shared, f.Name) {
				return
			}
			if other := owner[f.Name]; other != "" {
				t.Errorf("--%s is a flag of %s and of %s", f.Name, other, cmd.CommandPath())
			}
			owner[f.Name] = cmd.CommandPath()
		})
	}
	for flag, want := range map[string]string{
		"batch-sizes": "xtts-host bench", "input-modes": "xtts-host bench", "version": "xtts-host",
	} {
		if owner[flag] != want {
			t.Errorf("--%s is a flag of %q, want %s", flag, owner[flag], want)
		}
	}
}

// TestDiskWait: each command that waits for a disk has the flag that its warning names, and takes the time from the
// environment, too.
func TestDiskWait(t *testing.T) {
	for _, cmd := range all(New()) {
		if cmd.Flags().Lookup("cache-dir") != nil && cmd.Flags().Lookup("disk-wait") == nil {
			t.Errorf("%s has no --disk-wait", cmd.CommandPath())
		}
	}
	t.Setenv("XTTS_HOST_DISK_WAIT", "0")
	cmd := withSome(&cobra.Command{Use: "try"}, []string{"plugins"}, func(*cobra.Command, *config.Set, []string) error {
		began := time.Now()
		_, err := files.Read("/proc/self/mem", 1) // nothing is at its start
		if took := time.Since(began); !errors.Is(err, syscall.EIO) || took > 200*time.Millisecond {
			t.Errorf("XTTS_HOST_DISK_WAIT=0 waits for %v: %v", took, err)
		}
		return nil
	})
	cmd.SetArgs([]string{})
	if err := cmd.Execute(); err != nil {
		t.Error(err)
	}
}

// TestFlagsOfOtherTrainers: the names of other trainers are answered where a run's settings are.
func TestFlagsOfOtherTrainers(t *testing.T) {
	for _, c := range []struct{ command, typed, want string }{
		{"train", "--learning_rate", "did you mean --lr?"},
		{"validate", "--per_device_train_batch_size", "did you mean --batch-size?"},
		{"bench", "--learning-rate", "did you mean --lr?"},
		{"train", "--coqpit.batch_size", "did you mean --batch-size?"},
		{"train", "--trainer.devices", "one run trains on one GPU"},
		{"train", "--num_gpus", "docs/gpu.md#several-gpus"},
		{"train", "--mixed-precision", "--precision bf16 trains in bf16"},
		{"train", "--language", "JSON Lines"},
		{"synthesize", "--num_gpus", "lists the flags"},
		{"plugins test", "--debug", "plugins try and plugins dev have --debug"},
		{"train", "--run", `it is a flag of "xtts-host evaluate"`},
		{"train", "trainer.devices=4", "one run trains on one GPU"},
		{"train", "batch_size=4", "settings are flags: --batch-size 4"},
		{"train", "x=4", "settings are flags, and --help lists them"},
	} {
		root := New()
		root.SetArgs(append(strings.Fields(c.command), c.typed))
		root.SetOut(io.Discard)
		if err := root.Execute(); !strings.Contains(hint.Of(err), c.want) {
			t.Errorf("%s %s: %v (%s), want %s", c.command, c.typed, err, hint.Of(err), c.want)
		}
	}
}

// TestOtherNames: a command that is not there is answered before its flags, also by the names that other programs have.
func TestOtherNames(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"speak --run r", "did you mean synthesize?"},
		{"speak", "did you mean synthesize?"},
		{"--lr 1 tts --out a.wav --no-such-flag", "did you mean synthesize?"},
		{"infer --text x", "did you mean synthesize?"},
		{"eval --run r", "did you mean evaluate?"},
		{"check --run r", "did you mean validate or data check?"},
		{"synthesise --speaker x", "did you mean synthesize?"},
		{"data chek --run r", "did you mean data check?"},
		{"nothing-like-it --run r", "xtts-host --help lists the commands"},
		{"--run r speak", `it is a flag of "xtts-host evaluate"`},
	} {
		root := New()
		root.SetArgs(strings.Fields(c.line))
		root.SetOut(io.Discard)
		err := root.Execute()
		if err == nil || hint.Of(err) != c.want ||
			strings.HasPrefix(c.want, "it is") == strings.Contains(err.Error(), "unknown command") {
			t.Errorf("%s: %v (%s), want %s", c.line, err, hint.Of(err), c.want)
		}
	}
}

// TestCommandsPage: docs/commands.md is the help of all commands.
func TestCommandsPage(t *testing.T) {
	const golden = "../../../docs/commands.md"
	var page strings.Builder
	page.WriteString("# Commands\n\n" +
		"The help of every command. This page is generated: `make generate` writes it.\n")
	var sections strings.Builder
	page.WriteString("\n| command | |\n|---|---|\n")
	for _, cmd := range all(New()) {
		// which has the help of the program
		if !cmd.HasParent() || !cmd.HasAvailableSubCommands() && cmd.Name() != "train" {
			title := cmd.CommandPath()
			fmt.Fprintf(&page, "| [%s](#%s) | %s |\n", title, strings.ReplaceAll(title, " ", "-"), cmd.Short)
			fmt.Fprintf(&sections, "\n## %s\n\n```text\n%s```\n", title, Help(cmd, widest))
		}
	}
	page.WriteString(sections.String())
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
		t.Errorf("%s is not the help of the commands: make generate writes it", golden)
	}
}

// TestNarrowHelp: in a narrow terminal only the examples are wider, which are copied.
func TestNarrowHelp(t *testing.T) {
	for _, cmd := range all(New()) {
		for _, width := range []int{80, 72} {
			for line := range strings.Lines(Help(cmd, width)) {
				line = strings.TrimRight(line, " \n")
				if utf8.RuneCountInString(line) > width && !strings.HasPrefix(line, "  "+cmd.Root().Name()) {
					t.Errorf("%s, %d columns: %q", cmd.CommandPath(), width, line)
				}
			}
		}
	}
}
