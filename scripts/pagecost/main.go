// Command pagecost measures what the live page costs a run: the times of the steps and the CPU time of runs without
// --dashboard, with it and no client, with eight clients that read, and with one that does not read
// (docs/dashboard.md).
//
//	go run ./scripts/pagecost -seeds 5 -steps 400 -- --plugins ./plugins --batch-size 8
//
// The flags after -- are those of the runs. Each seed has a round of all conditions in a random order, and each step
// time is divided by that of the same round without a page. A run without a page is made twice in a round: the second
// shows what the machine alone changes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// warm is the number of steps that do not count: the pipeline and the caches of the machine fill.
const warm = 20

// conditions are what a run is measured with. The first one is what the others are compared with.
var conditions = []struct {
	name    string
	page    bool
	clients int
	read    bool
}{
	{name: "no page"}, {name: "no page, again"}, {name: "a page, no client", page: true},
	{name: "8 clients that read", page: true, clients: 8, read: true},
	{name: "1 client that does not read", page: true, clients: 1},
}

// run is what was measured of a run.
type run struct {
	mean, median float64 // of the steps, in ms
	cpu          float64 // of the process and its plugins, in s
	others       float64 // share of the cores that other programs took
	answers      int64   // that clients read
}

func main() {
	program := flag.String("program", "bin/xtts-host", "the program")
	seeds := flag.Int("seeds", 5, "rounds, each with a seed of its own")
	steps := flag.Int("steps", 400, "steps of a run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rounds, err := measure(ctx, *program, *seeds, *steps, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	print(rounds)
}

// measure makes the runs of all rounds; a round has a run for each condition.
func measure(ctx context.Context, program string, seeds, steps int, flags []string) (rounds [][]run, err error) {
	if seeds < 2 || steps <= warm {
		return nil, fmt.Errorf("-seeds %d -steps %d: 2 seeds and %d steps are the least", seeds, steps, warm+1)
	}
	for seed := 1; seed <= seeds; seed++ {
		round := make([]run, len(conditions))
		for _, i := range rand.New(rand.NewPCG(uint64(seed), 0)).Perm(len(conditions)) {
			if round[i], err = train(ctx, program, seed, steps, i, flags); err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", conditions[i].name, seed, err)
			}
			r := &round[i]
			fmt.Fprintf(os.Stderr, "seed %d, %s: a step takes %.3f ms, half of them at most %.3f ms; CPU time %.2f s; "+
				"%d messages and answers were read\n", seed, conditions[i].name, r.mean, r.median, r.cpu, r.answers)
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}

// train makes a run with a condition.
func train(ctx context.Context, program string, seed, steps, condition int, flags []string) (r run, err error) {
	c := conditions[condition]
	dir, err := os.MkdirTemp("", "pagecost-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "run")
	args := append(slices.Clone(flags), "--seed", fmt.Sprint(seed), "--max-steps", fmt.Sprint(steps),
		"--run-dir", folder, "--eval-every", "1000000000", "--spoken-clips", "0", "--checkpoint-every", "0",
		"--schedule", "constant")
	at := ""
	if c.page {
		if at, err = free(); err != nil {
			return r, err
		}
		args = append(args, "--dashboard", at)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return r, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	ended, end := context.WithCancel(ctx)
	all := watch(ended, at, c.clients, c.read)
	err = cmd.Run()
	end()
	r.answers = all.wait()
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		os.Stderr.Write(text[max(0, len(text)-2000):])
		return r, err
	}
	if c.read && r.answers == 0 {
		return r, fmt.Errorf("no client has read anything: more -steps are needed")
	}
	r.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if r.others, err = others(filepath.Join(folder, "report.json")); err != nil {
		return r, err
	}
	r.mean, r.median, err = times(filepath.Join(folder, "metrics.jsonl"))
	return r, err
}

// free is an address of this machine that is free.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// times reads the times of the steps of a run, in ms.
func times(path string) (mean, median float64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var list []float64
	for in := bufio.NewScanner(f); in.Scan(); {
		var line struct {
			Step int
			Ms   float64 `json:"step_ms"`
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return 0, 0, err
		}
		if line.Step > warm {
			list = append(list, line.Ms)
			mean += line.Ms
		}
	}
	if len(list) == 0 {
		return 0, 0, fmt.Errorf("%s has no steps after the first %d", path, warm)
	}
	slices.Sort(list)
	return mean / float64(len(list)), list[len(list)/2], nil
}

// others reads from a report how much of the cores other programs took.
func others(path string) (float64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var report struct{ Verdict struct{ Others float64 } }
	err = json.Unmarshal(data, &report)
	return report.Verdict.Others, err
}

// print prints the ratios of each condition to the first one.
func print(rounds [][]run) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "condition\tstep, ms\tratio of the means\tof the medians\tCPU time, s\tratio")
	for i, c := range conditions {
		column := func(of func(*run) float64, ratio bool) string {
			var list []float64
			for k := range rounds {
				v := of(&rounds[k][i])
				if ratio {
					v /= of(&rounds[k][0])
				}
				list = append(list, v)
			}
			mean, spread := meanOf(list)
			if !ratio {
				return fmt.Sprintf("%.3f", mean)
			}
			return fmt.Sprintf("%.4f ± %.4f (%.4f to %.4f)", mean, spread, slices.Min(list), slices.Max(list))
		}
		mean, median := func(r *run) float64 { return r.mean }, func(r *run) float64 { return r.median }
		cpu := func(r *run) float64 { return r.cpu }
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.name, column(mean, false), column(mean, true),
			column(median, true), column(cpu, false), column(cpu, true))
	}
	w.Flush()
	busy := 0.0
	for _, round := range rounds {
		for _, r := range round {
			busy = max(busy, r.others)
		}
	}
	fmt.Printf("%d rounds at %s. ± is the standard error over them; the least and the largest are in brackets.\n"+
		"Other programs took up to %.0f %% of the cores.\n", len(rounds),
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), 100*busy)
}

// meanOf returns the mean and its standard error.
func meanOf(list []float64) (mean, spread float64) {
	n := float64(len(list))
	for _, v := range list {
		mean += v / n
	}
	for _, v := range list {
		spread += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(spread / (n - 1) / n)
}
