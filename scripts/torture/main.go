// Command torture breaks training runs on purpose, and shows that it made no difference. It runs xtts-host with a small
// bundle and both first-party plugins, stops or kills the host or a plugin at a chosen point of the protocol, resumes
// what died, and compares what is left with a run that nobody disturbed: losses, checkpoints and rows must be the same, and
// no process and no file may be left behind.
//
//	torture -kills 200 -seed 1       200 cases, then a table of what was struck
//	torture -seed 1 -case 17         one of them again
//	torture -soak 20m                20 minutes of training with a plugin killed every 10 s: does anything grow?
//
// A case is a function of seed and number. docs/torture.md says what is struck and what is asserted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	one := flag.Int("case", -1, "run only the case of this `number`")
	jobs := flag.Int("jobs", 2*runtime.NumCPU(), "cases at the same time: half of their time they wait")
	soak := flag.Duration("soak", 0, "train for that long instead, with a plugin killed every 10 s")
	results := flag.String("json", "", "`file` for the soak's figures")
	flag.StringVar(&l.host, "host", "bin/xtts-host", "the program to break")
	flag.StringVar(&l.plugins, "plugins", "plugins", "its plugins")
	flag.Func("env", "`NAME=VALUE` for every run, such as XTTS_HOST_DEVICE=cuda; may be given again", func(v string) error {
		l.env = append(l.env, v)
		return nil
	})
	flag.StringVar(&l.graph, "graph", "ortgraphs/testdata/pico", "the bundle to train")
	flag.Parse()
	if err := l.open(); err != nil {
		return err
	}
	if *soak > 0 {
		return l.soak(ctx, *soak, *results)
	}
	numbers := []int{*one}
	if *one < 0 {
		numbers = numbers[:0]
		for n := range *kills {
			numbers = append(numbers, n)
		}
	}
	return l.torture(ctx, *seed, numbers, *jobs)
}

// torture runs cases and prints the table.
func (l *lab) torture(ctx context.Context, seed uint64, numbers []int, jobs int) error {
	began := time.Now()
	var references [len(variants)]*reference
	for i, v := range variants {
		var err error
		if references[i], err = l.reference(ctx, v); err != nil {
			return fmt.Errorf("undisturbed run %s, in %s: %w", v.name, l.dir, err)
		}
	}
	queue := make(chan int)
	var mu sync.Mutex // guards table and the output
	table := newTable()
	var workers sync.WaitGroup
	for range max(1, jobs) {
		workers.Go(func() {
			for n := range queue {
				c := newCase(seed, n, func(variant int, phase string) int { return references[variant].points[phase] })
				struck, err := l.play(ctx, c, references[c.variant])
				mu.Lock()
				table.add(c, struck, err)
				if err != nil {
					fmt.Printf("FAIL %s\n     %v\n     again: make torture SEED=%d CASE=%d; its folder: %s\n", c, err, seed, n, l.caseDir(c))
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
	fmt.Printf("\n%s%d cases in %v\n", table, len(numbers), time.Since(began).Round(time.Second))
	if table.failed > 0 {
		return fmt.Errorf("%d of %d cases failed; their folders are in %s", table.failed, len(numbers), l.dir)
	}
	return os.RemoveAll(l.dir)
}

// lab is where runs are made: a temporary folder, and what is to be run.
type lab struct {
	host, plugins, graph string
	env                  []string // of every run, above the harness's own
	cache                string   // shared by all runs, as a user's is
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
	l.dir, err = os.MkdirTemp("", "torture")
	return err
}

func (l *lab) caseDir(c *tortureCase) string {
	return filepath.Join(l.dir, fmt.Sprintf("case-%d-%d", c.seed, c.number))
}
