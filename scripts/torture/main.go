// Command torture injects faults into training runs, and verifies that they change nothing. It runs xtts-host with a
// small bundle and both first-party plugins, stops or kills the host or a plugin in a chosen phase of the protocol,
// resumes a killed host, and compares the result with an undisturbed run: losses, checkpoints and rows must be the
// same, and no process and no file may remain.
//
//	torture -kills 200 -seed 1       200 cases, then a table of the faults
//	torture -seed 1 -case 17         one case again
//	torture -ranks 60                60 rounds with runs of several processes
//	torture -soak 20m                20 minutes of training with a plugin killed every 10 s: does anything grow?
//
// A case is a function of seed and number. docs/torture.md describes the faults and the checks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/ortgraphs/variant"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func main() {
	// SIGHUP too: if nohup has it ignored, the runs would inherit that, and its cases would show nothing.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGHUP)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var l lab
	kills := flag.Int("kills", 200, "number of cases")
	seed := flag.Uint64("seed", 1, "cases are a function of it")
	again := flag.Int("again", -1, "kill runs this many `times`, half of them with players, and start them again by "+
		"the same command line (default: a quarter of -kills)")
	one := flag.Int("case", -1, "run only the case of this `number`")
	ranks := flag.Int("ranks", 0, "disturb runs of several processes instead, in so many `rounds`; -case repeats one")
	jobs := flag.Int("jobs", 2*runtime.NumCPU(), "number of concurrent cases: they wait half of their time")
	soak := flag.Duration("soak", 0, "train for that long instead, with a plugin killed every 10 s")
	results := flag.String("json", "", "`file` for the soak's figures")
	flag.StringVar(&l.host, "host", "bin/xtts-host", "the program to test")
	flag.StringVar(&l.plugins, "plugins", "plugins", "its plugins")
	flag.Func("env", "`NAME=VALUE` for every run, such as XTTS_HOST_DEVICE=cuda; may be repeated",
		func(v string) error {
			l.env = append(l.env, v)
			return nil
		})
	flag.StringVar(&l.graph, "graph", "ortgraphs/testdata/pico",
		"the `folder` of the bundle pico, of which one with players and state is made, too")
	flag.Parse()
	if err := l.open(); err != nil {
		return err
	}
	if *soak > 0 {
		return l.soak(ctx, *soak, *results)
	}
	if *ranks > 0 {
		return l.rounds(ctx, *seed, *ranks, *one)
	}
	numbers := []int{*one}
	if *one < 0 {
		numbers = numbers[:0]
		for n := range *kills {
			numbers = append(numbers, n)
		}
	}
	if *again < 0 {
		*again = *kills / 4
	}
	if *one >= 0 {
		*again = 0
	}
	return l.torture(ctx, *seed, numbers, *jobs, *again)
}

// torture runs cases and prints the table.
func (l *lab) torture(ctx context.Context, seed uint64, numbers []int, jobs, again int) error {
	began := time.Now()
	var references [len(kinds)]*reference
	for i, k := range kinds {
		var err error
		if references[i], err = l.reference(ctx, k); err != nil {
			return fmt.Errorf("undisturbed run %s, in %s: %w", k.name, l.dir, err)
		}
	}
	queue := make(chan int)
	var mu sync.Mutex // guards table and the output
	table := newTable()
	var workers sync.WaitGroup
	for i, k := range oftenSaved {
		times := (again + i) / len(oftenSaved)
		if times == 0 {
			continue
		}
		workers.Go(func() {
			err := l.startAgain(ctx, seed, k, times)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				table.failed++
				fmt.Printf("FAIL %s: one run killed %d times: %v\n     its folder is in %s\n", k.name, times, err,
					l.dir)
			} else {
				fmt.Printf("ok   %s: one run killed %d times and started again by the same command line\n", k.name,
					times)
			}
		})
	}
	for range max(1, jobs) {
		workers.Go(func() {
			for n := range queue {
				c := newCase(seed, n, func(kind int, phase string) int { return references[kind].points[phase] })
				injected, err := l.play(ctx, c, references[c.kind])
				mu.Lock()
				table.add(c, injected, err)
				if err != nil {
					fmt.Printf("FAIL %s\n     %v\n     repeat: make torture SEED=%d CASE=%d; its folder: %s\n", c, err,
						seed, n, l.caseDir(c))
				} else {
					fmt.Printf("ok   %s\n", c)
				}
				mu.Unlock()
			}
		})
	}
	for _, n := range numbers {
		if ctx.Err() != nil {
			break
		}
		queue <- n
	}
	close(queue)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(numbers) > 0 {
		fmt.Printf("\n%s%d cases in %v\n", table, len(numbers), time.Since(began).Round(time.Second))
	}
	if table.failed > 0 {
		return fmt.Errorf("%d cases failed; their folders are in %s", table.failed, l.dir)
	}
	return os.RemoveAll(l.dir)
}

// lab is a temporary folder for the runs, and the programs to run.
type lab struct {
	host, plugins, graph string
	players              string   // graph with two players and state
	dry                  string   // graph without dropout
	env                  []string // of every run, added to the harness's own
	cache                string   // shared by all runs, like a user's cache
	dir                  string
}

func (l *lab) open() (err error) {
	for _, path := range []*string{&l.host, &l.plugins, &l.graph} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("%w (make build)", err)
		}
	}
	if l.cache, err = os.UserCacheDir(); err != nil {
		return err
	}
	if l.dir, err = os.MkdirTemp("", "torture"); err != nil {
		return err
	}
	l.players, l.dry = filepath.Join(l.dir, "players"), filepath.Join(l.dir, "dry")
	_, err = variant.Rewrite(l.graph, l.players, variant.State, variant.Players(ofFirst, nil), courses)
	if err == nil {
		_, err = variant.Rewrite(l.graph, l.dry, variant.WithoutDropout)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(l.dir))
	}
	return nil
}

// ofFirst accepts what the first of two players has. It changes the state, which the other one reads.
func ofFirst(name string) bool {
	return strings.HasPrefix(name, "text_encoder.") || strings.HasPrefix(name, "statistics.") ||
		name == "metric.stop_loss"
}

// courses gives the players optimizers and learning rates of their own, which evaluations lower.
func courses(_ string, m *manifest.Bundle) error {
	m.Players[0].Optimizer = manifest.Optimizer{Name: "sgd", LR: 0.01, Momentum: 0.9, GradClip: 1}
	m.Players[0].Schedule = &manifest.Schedule{Name: "plateau"}
	m.Players[1].Optimizer.LR = 0.02
	m.Players[1].Schedule = &manifest.Schedule{Name: "plateau", WarmupSteps: 50}
	return nil
}

func (l *lab) caseDir(c *tortureCase) string {
	return filepath.Join(l.dir, fmt.Sprintf("case-%d-%d", c.seed, c.number))
}
