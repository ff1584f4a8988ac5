package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report/screentest"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
)

// TestTerminal interrupts a run on a terminal as a person would. What is left on the screen is what a run into a
// pipe prints: whole lines, in order, and no bar.
func TestTerminal(t *testing.T) {
	s := screentest.Open(t, 200, 24)
	stop := make(chan struct{})
	var once sync.Once
	out := writer(func(p []byte) {
		s.TTY.Write(p)
		if bytes.Contains(p, []byte("grad_norm")) { // in a frame with the bar
			once.Do(func() {
				fmt.Fprint(s.TTY, "^C") // what a terminal shows
				close(stop)
			})
		}
	})
	dir := filepath.Join(t.TempDir(), "run")
	set := configtest.Parse(t, "--plugins", plugins, "--graph", pico, "--batch-size", "4", "--run-dir", dir,
		"--num-workers", "1")
	err := Train(t.Context(), set, console.Console{Out: out, Err: out, Terminal: true, ErrTerminal: true, Stop: stop})
	if exit.Code(err) != 130 {
		t.Fatalf("exit status %d: %v", exit.Code(err), err)
	}
	screen := s.Close()
	for _, line := range []string{
		`xtts-host trains myxtts-pico`, `  devices      cpu -> data:  .*`,
		`               cpu -> model: training and evaluation.*`,
		`warning: --batch-size 4 leaves the CPU's vector units idle: use 8 or more`,
		`training starting now: .*`, `step +1/\d+  loss .*(?: |\n) +grad_norm \S+`,
		`stopping after this step; interrupt again to stop immediately`, `myxtts-pico on cpu: interrupted after .*`,
		`  run folder      .*`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(screen) {
			t.Errorf("no line %q", line)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
	if err != nil || !bytes.Contains(data, []byte("--batch-size 4 leaves the CPU's vector units idle")) {
		t.Errorf("%v: the report lacks a warning of the start", err)
	}
	if strings.ContainsAny(screen, "━─╸") || strings.Contains(screen, "^C") {
		t.Error("something is left of the bar")
	}
	if t.Failed() {
		t.Log("\n" + screen)
	}
}

// TestPipe: what is no terminal gets plain lines.
func TestPipe(t *testing.T) {
	var out bytes.Buffer
	if _, err := trainPico(t, console.Console{Out: &out}, "--max-steps", "22", "--log-every", "1"); err != nil {
		t.Fatal(err)
	}
	for _, c := range out.String() {
		if c < ' ' && c != '\n' {
			t.Fatalf("control character %q in\n%s", c, &out)
		}
	}
	if lines := regexp.MustCompile(`(?m)^step .* steps/s .*$`).FindAllString(out.String(), -1); len(lines) != 21 {
		t.Errorf("%d lines with a speed of 22, want all but the first:\n%s", len(lines), &out)
	}
	if lines := regexp.MustCompile(`(?m)^pipeline  step [\d.]+ ± [\d.]+ ms  .*$`).FindAllString(
		out.String(), -1,
	); len(lines) != 1 {
		t.Errorf("pipeline lines %q, want one", lines)
	}
}

// TestStartFitsThePage: the banner is made for 100 columns.
func TestStartFitsThePage(t *testing.T) {
	var out bytes.Buffer
	if _, err := trainPico(
		t, console.Console{Out: &out}, "--max-steps", "1", "--accumulate", "2", "--eval-every", "7",
	); err != nil {
		t.Fatal(err)
	}
	start, _, _ := strings.Cut(out.String(), "waiting for")
	for line := range strings.Lines(start) {
		// paths are as long as they are
		n := len([]rune(line))
		if n > 101 && !strings.HasPrefix(line, "  data ") && !strings.HasPrefix(line, "  run folder ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
