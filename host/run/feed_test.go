package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
)

// TestRanksShareProcesses: the ranks of a machine have one set of plugin processes, and losses as one rank. With other
// names of their machines, and with --verify-plugins, they have as many sets as machines, or as ranks.
func TestRanksShareProcesses(t *testing.T) {
	graph, root := dry(t), t.TempDir()
	// augment has one process, features two
	flags := []string{"--graph", graph, "--max-steps", "5", "--eval-every", "3", "--augment", "waveaug,specaugment",
		"--plugin-workers", "features=2", "--log-every", "1"}
	run := func(name string, size int, on func(int) string, more ...string) (string, int) {
		dir, most := filepath.Join(root, name), 0
		count := writer(func(p []byte) {
			if bytes.Contains(p, []byte("step ")) {
				most = max(most, len(children(t)))
			}
		})
		all := append(append(flags, more...), "--batch-size", fmt.Sprint(6/size), "--run-dir", dir)
		rankTest{size: size, flags: all, out: count, on: on}.mustTrain(t)
		if left := children(t); len(left) > 0 {
			t.Errorf("%s: processes are left: %v", name, left)
		}
		return dir, most
	}
	one, n := run("one", 1, nil)
	if n != 3 {
		t.Fatalf("%d processes of one rank", n)
	}
	calls := func(dir string) (n int64) {
		for _, p := range readReport(t, dir).Plugins {
			n += p.Calls
		}
		return n
	}
	for _, c := range []struct {
		name      string
		size      int
		on        func(rank int) string
		flags     []string
		processes int
		owners    []int // ranks
	}{
		{"two", 2, nil, nil, 3, []int{0}},
		{"three", 3, nil, nil, 3, []int{0}},
		{"two machines", 3, func(rank int) string { return fmt.Sprint(min(rank, 1)) }, nil, 6, []int{0, 1}},
		{"verified", 2, nil, []string{"--verify-plugins"}, 6, []int{0, 1}},
	} {
		dir, n := run(c.name, c.size, c.on, c.flags...)
		if n != c.processes {
			t.Errorf("%s: %d processes, want %d", c.name, n, c.processes)
		}
		for _, file := range []string{rundir.MetricsFile, rundir.EvalFile} {
			near(t, c.name, filepath.Join(one, file), filepath.Join(dir, file), 2e-6)
		}
		fed, done := 0, int64(0)
		for rank := range c.size {
			own := dir
			if rank > 0 {
				own = filepath.Join(dir, rundir.RanksFolder, fmt.Sprint(rank))
			}
			r := readReport(t, own)
			owns := false
			for _, owner := range c.owners {
				owns = owns || owner == rank
			}
			if owns != (len(r.Plugins) == 2) || !owns && len(r.Plugins) > 0 {
				t.Errorf("%s: rank %d reports %+v", c.name, rank, r.Plugins)
			}
			if owns {
				fed += r.Plugins[0].Ranks
			}
			done += calls(own)
		}
		// Evaluations have as many batches, which are shared out; in training, each rank has as many as one.
		if fed != c.size || done <= calls(one) {
			t.Errorf("%s: %d ranks fed, %d calls; one rank has %d", c.name, fed, done, calls(one))
		}
	}
}

// TestRanksSurviveDamage: what a plugin that all ranks share does to the ring, and its end, changes no bit of a run.
func TestRanksSurviveDamage(t *testing.T) {
	folder := faultyPlugins(t, nil)
	train := func(faults, marks string) (string, string) {
		t.Setenv("XTTS_PLUGIN_FAULT", faults)
		t.Setenv("XTTS_PLUGIN_FAULT_MARKS", marks)
		dir := filepath.Join(t.TempDir(), "run")
		rankTest{size: 2, flags: []string{
			"--graph", pico, "--batch-size", "2", "--run-dir", dir, "--plugins", folder, "--augment", "mix",
			"--max-steps", "12", "--eval-every", "5",
		}}.mustTrain(t)
		return dir, strings.Join(readReport(t, dir).Warnings, "\n")
	}
	want, _ := train("", "")
	for _, fault := range []string{
		"crashes", "overwrites the whole ring", "overwrites other slots", "gives a negative length", "answers twice",
	} {
		dir, warnings := train(fault, t.TempDir())
		if !strings.Contains(warnings, "plugin faulty is restarted: ") {
			t.Errorf("%s: nothing has happened:\n%s", fault, warnings)
		}
		for _, file := range []string{rundir.MetricsFile, rundir.EvalFile} {
			near(t, fault, filepath.Join(want, file), filepath.Join(dir, file), 0)
			near(t, fault+", rank 1", filepath.Join(want, file), filepath.Join(dir, rundir.RanksFolder, "1", file), 0)
		}
	}
}

// TestSharedPluginFails: a plugin that cannot be started again ends all ranks. The owner says why, and the other one
// that the owner has failed.
func TestSharedPluginFails(t *testing.T) {
	dir, program := filepath.Join(t.TempDir(), "run"), ""
	folder := faultyPlugins(t, func(dir string) { program = filepath.Join(dir, faultyProgram) })
	var once sync.Once
	spoil := writer(func(p []byte) {
		if bytes.Contains(p, []byte("  loss ")) {
			once.Do(func() {
				if err := os.Remove(program); err != nil {
					t.Error(err)
				}
				for _, pid := range children(t) {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			})
		}
	})
	errs := rankTest{size: 2, out: spoil, flags: []string{
		"--graph", pico, "--batch-size", "2", "--run-dir", dir, "--plugins", folder, "--augment", "mix", "--max-steps",
		"100000", "--epochs", "0", "--log-every", "1",
	}}.train(t)
	const why = "plugin faulty: a process ended and cannot be restarted: "
	if errs[0] == nil || !strings.Contains(errs[0].Error(), why) || exit.Code(errs[0]) == exit.StatusRank {
		t.Errorf("rank 0: %v, exit status %d", errs[0], exit.Code(errs[0]))
	}
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "rank 0 failed: ") ||
		!strings.Contains(errs[1].Error(), why) || exit.Code(errs[1]) != exit.StatusRank {
		t.Errorf("rank 1: %v, exit status %d", errs[1], exit.Code(errs[1]))
	}
}
