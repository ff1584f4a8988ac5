package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	killEvery   = 10 * time.Second
	sampleEvery = 5 * time.Second
)

// Limits of growth from the end of the warm-up to the end.
const (
	heapLimit      = 1 << 20
	anonymousLimit = 8 << 20
)

// series is one figure of one process over time. Plugin processes of one place count as one: they follow one another.
type series struct {
	Name   string `json:"name"`
	Limit  int64  `json:"limit"`  // of the growth; reaching it is a failure
	First  int64  `json:"first"`  // median of the first quarter after the warm-up
	Last   int64  `json:"last"`   // median of the last quarter
	Growth int64  `json:"growth"` // Last - First
	Max    int64  `json:"max"`

	values []int64
}

// sum computes the figures and reports whether the limit holds. The first tenth is the warm-up.
func (s *series) sum() bool {
	warm := s.values[len(s.values)/10:]
	if len(warm) < 4 {
		return false
	}
	quarter := len(warm) / 4
	s.First, s.Last, s.Max = median(warm[:quarter]), median(warm[len(warm)-quarter:]), slices.Max(warm)
	s.Growth = s.Last - s.First
	return s.Growth < s.Limit
}

func median(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// soak trains for that long with a plugin killed every ten seconds, in rotation, and shows what has grown.
func (l *lab) soak(ctx context.Context, length time.Duration, results string) error {
	s, err := l.site(filepath.Join(l.dir, "soak"), "soak", kind{})
	if err != nil {
		return err
	}
	defer s.killAll()
	cmd := s.command("--max-steps", "100000000", "--epochs", "100000000", "--eval-every", "500",
		"--checkpoint-every", "500", "--plugin-workers", "features=2", "--plugin-timeout", "0")
	log, err := os.Create(s.path("output.txt"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }() // ProcessState has the exit status
	kills, figures, err := s.watch(ctx, cmd.Process.Pid, length, ended)
	cmd.Process.Signal(syscall.SIGINT)
	limit := time.AfterFunc(hostLimit, func() { cmd.Process.Kill() })
	<-ended
	limit.Stop()
	if err == nil && cmd.ProcessState.ExitCode() != 130 {
		err = fmt.Errorf("interrupted, the host ended with %v", cmd.ProcessState)
	}
	if err = errors.Join(err, s.clean()); err != nil {
		text, _ := os.ReadFile(s.path("output.txt"))
		return fmt.Errorf("%w\n%s", err, lastLines(string(text), 20))
	}
	heap, err := s.heap()
	if err != nil {
		return err
	}
	steps, err := s.steps()
	if err != nil {
		return err
	}
	return errors.Join(show(append(heap, figures...), length, kills, steps, results), os.RemoveAll(l.dir))
}

// watch samples and kills until the time is over.
func (s *site) watch(
	ctx context.Context, host int, length time.Duration, ended <-chan struct{},
) (kills int, figures []*series, err error) {
	sample, kill := time.NewTicker(sampleEvery), time.NewTicker(killEvery)
	defer sample.Stop()
	defer kill.Stop()
	over := time.NewTimer(length)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return kills, nil, context.Cause(ctx)
		case <-ended:
			return kills, nil, fmt.Errorf("the host ended by itself after %d kills", kills)
		case <-over.C:
			return kills, figures, nil
		case <-sample.C:
			figures = s.sample(figures, host)
		case <-kill.C:
			if plugins := s.plugins(host); len(plugins) > 0 {
				victim := plugins[kills%len(plugins)]
				if err := syscall.Kill(victim.pid, syscall.SIGKILL); err == nil {
					kills++
				}
			}
		}
	}
}

type namedProcess struct {
	name string
	pid  int
}

// plugins returns the plugin processes, numbered within a pool, in the order of their names and ids.
func (s *site) plugins(host int) []namedProcess {
	var found []namedProcess
	for _, pid := range s.processes() {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || pid == host || !strings.HasPrefix(exe, s.lab.plugins) {
			continue // it has ended, or it is forked and not yet a plugin
		}
		found = append(found, namedProcess{filepath.Base(filepath.Dir(exe)), pid})
	}
	slices.SortFunc(found, func(a, b namedProcess) int {
		return cmp.Or(strings.Compare(a.name, b.name), a.pid-b.pid)
	})
	return found
}

// sample records the figures of every process. Two processes of a pool share a series, because their growth matters,
// not their identity.
func (s *site) sample(figures []*series, host int) []*series {
	for _, p := range append([]namedProcess{{"host", host}}, s.plugins(host)...) {
		anonymous, err := rssAnon(p.pid)
		if err != nil {
			continue // it has ended
		}
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
		if err != nil {
			continue
		}
		figures = add(figures, p.name+" anonymous bytes", anonymousLimit, anonymous)
		figures = add(figures, p.name+" descriptors", 2, int64(len(fds)))
	}
	return figures
}

func add(figures []*series, name string, limit, value int64) []*series {
	i := slices.IndexFunc(figures, func(s *series) bool { return s.Name == name })
	if i < 0 {
		i, figures = len(figures), append(figures, &series{Name: name, Limit: limit})
	}
	figures[i].values = append(figures[i].values, value)
	return figures
}

// rssAnon returns the resident anonymous memory of a process in bytes (proc_pid_status(5)).
func rssAnon(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no RssAnon", pid) // the process is ending
}

// heap reads the figures that the host has recorded about itself.
func (s *site) heap() ([]*series, error) {
	data, err := os.ReadFile(filepath.Join(s.path("debug"), "memory.jsonl"))
	if err != nil {
		return nil, err
	}
	var figures []*series
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var v struct {
			Heap        int64 `json:"heap_bytes"`
			Goroutines  int64
			Descriptors int64
		}
		if err := dec.Decode(&v); err != nil {
			return nil, fmt.Errorf("memory.jsonl: %w", err)
		}
		figures = add(figures, "host live heap bytes", heapLimit, v.Heap)
		figures = add(figures, "host goroutines", 2, v.Goroutines)
	}
	return figures, nil
}

// steps counts the lines of metrics.jsonl. Every step must have one.
func (s *site) steps() (n int, err error) {
	f, err := os.Open(filepath.Join(s.path("run"), "metrics.jsonl"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for ; scan.Scan(); n++ {
		if !strings.HasPrefix(scan.Text(), fmt.Sprintf(`{"step":%d,`, n+1)) {
			return n, fmt.Errorf("metrics.jsonl, line %d: %s", n+1, scan.Text())
		}
	}
	return n, scan.Err()
}

// show prints the table, writes the file if requested, and returns what has grown.
func show(figures []*series, length time.Duration, kills, steps int, results string) error {
	var grown []error
	fmt.Printf("%-28s%16s%16s%14s%14s%16s\n", "", "first quarter", "last quarter", "growth", "below", "max")
	for _, s := range figures {
		if !s.sum() {
			grown = append(grown, fmt.Errorf("%s: from %d to %d", s.Name, s.First, s.Last))
		}
		fmt.Printf("%-28s%16d%16d%14d%14d%16d\n", s.Name, s.First, s.Last, s.Growth, s.Limit, s.Max)
	}
	fmt.Printf("%d steps in %v, %d plugins killed\n", steps, length, kills)
	if results != "" {
		data, err := json.MarshalIndent(map[string]any{
			"minutes": length.Minutes(), "kill_every_s": killEvery.Seconds(), "kills": kills, "steps": steps,
			"figures": figures,
		}, "", "  ")
		if err == nil {
			err = os.WriteFile(results, append(data, '\n'), 0o666)
		}
		grown = append(grown, err)
	}
	return errors.Join(grown...)
}
