package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// team is a run of several ranks, each a process of the program, as a launcher starts them.
type team struct {
	t       *testing.T
	mark    string // in the environment of all processes
	tmp     string // for temporary files
	plugins string
	env     []string
	ranks   []*exec.Cmd
	output  []*bytes.Buffer
}

func newTeam(t *testing.T) *team {
	t.Helper()
	plugins := t.TempDir()
	buildPlugin(t, plugins, "features")
	buildPlugin(t, plugins, "augment")
	tmp, err := os.MkdirTemp("/tmp", "team") // short enough for sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	library := absolute(t, "../..", ort.CachedLibrary)
	if named := os.Getenv(ort.LibraryEnv); named != "" {
		library = absolute(t, named)
	}
	team := &team{t: t, mark: "XTTS_PLUGIN_TEST_TEAM=" + tmp, tmp: tmp, plugins: plugins}
	team.env = append(os.Environ(), team.mark, "TMPDIR="+tmp, ort.LibraryEnv+"="+library, "XTTS_HOST_DEVICE=cpu",
		"XTTS_HOST_PLUGINS="+plugins, "XTTS_HOST_TRAIN_DATA="+unpackSample(t, t.TempDir()),
		"XDG_CACHE_HOME="+t.TempDir(), "XTTS_HOST_MODEL_START_DELAY=0.1", "XTTS_HOST_SPOKEN_CLIPS=0",
		"GORACE=atexit_sleep_ms=0", "XTTS_RANKS_SECRET=the secret of a test", "MASTER_ADDR=127.0.0.1")
	return team
}

// start starts the ranks of a run.
func (m *team) start(size int, args ...string) {
	m.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	m.ranks, m.output = nil, nil
	for rank := range size {
		cmd, out := exec.Command("xtts-host", args...), new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, 10*time.Second
		cmd.Env = append(m.env, "MASTER_PORT="+port, fmt.Sprint("RANK=", rank), fmt.Sprint("WORLD_SIZE=", size))
		if err := cmd.Start(); err != nil {
			m.t.Fatal(err)
		}
		m.t.Cleanup(func() { cmd.Process.Kill() })
		m.ranks, m.output = append(m.ranks, cmd), append(m.output, out)
	}
}

// wait waits for the ranks and returns how each has ended.
func (m *team) wait() (states []*os.ProcessState) {
	for _, cmd := range m.ranks {
		cmd.Wait() // the state has the exit status
		states = append(states, cmd.ProcessState)
	}
	return states
}

// processes are the names of the processes of the team.
func (m *team) processes() (names []string) {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, file := range all {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte(m.mark)) {
			continue // it has ended, or is another one
		}
		if program, err := os.Readlink(filepath.Join(filepath.Dir(file), "exe")); err == nil {
			names = append(names, filepath.Base(program))
		}
	}
	return names
}

// plugged counts the plugin processes.
func (m *team) plugged() (n int) {
	for _, name := range m.processes() {
		if name == catalogtest.Program("features") || name == catalogtest.Program("augment") {
			n++
		}
	}
	return n
}

// nothingLeft fails unless all processes end soon, and leave no socket or other file. The ring is memory of them.
func (m *team) nothingLeft(what string) {
	m.t.Helper()
	for end := time.Now().Add(10 * time.Second); len(m.processes()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Errorf("%s: processes are left: %v", what, m.processes())
			break
		}
	}
	left, _ := filepath.Glob(filepath.Join(m.tmp, "*"))
	// The next start removes the folders of a host that was killed.
	left = slices.DeleteFunc(left, func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), "xtts-plugin-tmp-")
	})
	if len(left) > 0 {
		m.t.Errorf("%s: files are left: %v", what, left)
	}
}

// steps waits until a run has so many, and returns their losses.
func (m *team) steps(dir string, n int) (losses []float64) {
	m.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		losses = nil
		data, _ := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			var step struct{ Loss float64 }
			if json.Unmarshal(lines.Bytes(), &step) == nil {
				losses = append(losses, step.Loss)
			}
		}
		if len(losses) >= n {
			return losses
		}
		if time.Now().After(end) {
			m.t.Fatalf("%s has %d steps:\n%s", dir, len(losses), m.output)
		}
	}
}

// TestRanksOfOneMachine: two and three ranks have the plugin processes of one, and its losses, and leave nothing.
func TestRanksOfOneMachine(t *testing.T) {
	m := newTeam(t)
	graph := bundletest.WithoutDropout(t, absolute(t, "..", "..", "ortgraphs", "testdata", "pico")).Dir
	var want []float64
	for _, size := range []int{1, 2, 3} {
		dir := filepath.Join(t.TempDir(), "run")
		m.start(size, "--graph", graph, "--augment", "waveaug,specaugment", "--run-dir", dir, "--max-steps", "40",
			"--batch-size", fmt.Sprint(6/size), "--buffer-size", "6", "--threads", "1", "--plugin-workers",
			"features=2")
		m.steps(dir, 1)
		if n := m.plugged(); n != 3 {
			t.Errorf("%d ranks have %d plugin processes", size, n)
		}
		for rank, state := range m.wait() {
			if state.ExitCode() != 0 {
				t.Fatalf("rank %d of %d: %v\n%s", rank, size, state, m.output[rank])
			}
		}
		m.nothingLeft(fmt.Sprint(size, " ranks"))
		banner := m.output[0].String()
		told := strings.Contains(banner, fmt.Sprintf(" for the %d ranks of this machine", size))
		if told != (size > 1) {
			t.Errorf("the banner of %d ranks:\n%s", size, banner)
		}
		losses := m.steps(dir, 40)
		if want == nil {
			want = losses
		}
		for i := range want {
			if math.Abs(losses[i]-want[i]) > 2e-5*math.Abs(want[i]) {
				t.Errorf("%d ranks: loss %v in step %d, want %v", size, losses[i], i+1, want[i])
			}
		}
	}
}

// TestRankOfOneMachineIsKilled: a kill of the rank that has the plugins, or of another one, ends all others with the
// status of a lost rank and its name, and leaves nothing.
func TestRankOfOneMachineIsKilled(t *testing.T) {
	m := newTeam(t)
	pico := absolute(t, "..", "..", "ortgraphs", "testdata", "pico")
	for victim := range 3 {
		dir := filepath.Join(t.TempDir(), "run")
		m.start(3, "--graph", pico, "--augment", "waveaug,specaugment", "--run-dir", dir, "--max-steps", "1000000",
			"--epochs", "0", "--batch-size", "2", "--buffer-size", "6", "--threads", "1", "--eval-every", "1000000")
		m.steps(dir, 5)
		if n := m.plugged(); n != 2 {
			t.Errorf("%d plugin processes", n)
		}
		if err := m.ranks[victim].Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for rank, state := range m.wait() {
			text := m.output[rank].String()
			if rank == victim {
				continue
			}
			if state.ExitCode() != 6 || !strings.Contains(text, fmt.Sprintf("rank %d (", victim)) {
				t.Errorf("rank %d is killed; rank %d: %v\n%s", victim, rank, state, text)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the others have ended after %v", took)
		}
		m.nothingLeft(fmt.Sprintf("rank %d is killed", victim))
	}
}
