package report

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns this process's use of memory and cores during a run of that wall time: its peak resident memory, and its
// CPU time as a share of all cores. Plugins are separate processes: [Collector.Complete] adds their CPU time.
func CPU(role string, wall time.Duration) (Memory, Utilization, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return Memory{}, Utilization{}, fmt.Errorf("resource usage of this process: %w", err)
	}
	busy := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return Memory{Device: "cpu", Role: role, ProcessPeakBytes: int64(u.Maxrss) << 10}, // Linux counts in KiB
		Utilization{Device: "cpu", Role: role, Mean: ratio(busy, wall*time.Duration(runtime.NumCPU()))}, nil
}

// countPlugins adds the CPU time of the plugins' processes to the use of the CPU.
func (r *Report) countPlugins() {
	cores := r.WallS * float64(runtime.NumCPU())
	for i := range r.Utilization {
		if u := &r.Utilization[i]; u.Device == "cpu" && cores > 0 {
			u.Mean = min(1, u.Mean+r.ofPlugins().Seconds()/cores)
		}
	}
}

// ofPlugins is the CPU time of the plugins' processes.
func (r *Report) ofPlugins() (busy time.Duration) {
	for i := range r.Plugins {
		busy += time.Duration(r.Plugins[i].CPUS * float64(time.Second))
	}
	return busy
}

// cpuTimes are times of cores; 0 if they are not known.
type cpuTimes struct {
	own time.Duration // that this process has taken
	all time.Duration // that all programs have taken, on the cores that this process may use, since the machine began
	at  int           // the number of these cores
}

// cpuTime returns the present times.
func cpuTime() (t cpuTimes) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return cpuTimes{}
	}
	t.own = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	var may unix.CPUSet
	text, err := os.ReadFile("/proc/stat")
	if err != nil || unix.SchedGetaffinity(0, &may) != nil {
		return t
	}
	t.all, t.at = busyCores(string(text), may.IsSet)
	return t
}

// busyCores adds up the times in which cores worked. /proc/stat has them in hundredths of a second on all machines.
// What another guest of the machine below has taken is among them. The last two columns, times in guests of this
// machine, are parts of the first ones.
func busyCores(text string, may func(core int) bool) (busy time.Duration, cores int) {
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		core, err := strconv.Atoi(strings.TrimPrefix(name, "cpu"))
		if err != nil || !strings.HasPrefix(name, "cpu") || !may(core) {
			continue
		}
		cores++
		for i, field := range strings.Fields(rest) {
			n, err := strconv.ParseInt(field, 10, 64)
			if idle := i == 3 || i == 4; err == nil && !idle && i < 8 {
				busy += time.Duration(n) * 10 * time.Millisecond
			}
		}
	}
	return busy, cores
}

// cores returns the part of the time of all cores that the run took since training began, this process and its plugins,
// and the part that other programs took. Both are 0 before and if they are not known. The processes of several ranks on
// a machine are no other programs, but are counted in none: there the second is 0.
func (c *Collector) cores(r *Report) (own, others float64) {
	if c.walltime.training.IsZero() || c.trainedCPU.own == 0 {
		return 0, 0
	}
	now := c.endedCPU
	ended := c.walltime.ending
	if ended.IsZero() {
		ended, now = time.Now(), c.cpu()
	}
	wall := ended.Sub(c.walltime.training)
	busy := now.own - c.trainedCPU.own + r.ofPlugins()
	own = min(1, ratio(busy, wall*time.Duration(runtime.GOMAXPROCS(0))))
	if all := now.all - c.trainedCPU.all; all > busy && now.at == c.trainedCPU.at && r.Process == nil {
		others = min(1, ratio(all-busy, wall*time.Duration(now.at)))
	}
	return own, others
}
