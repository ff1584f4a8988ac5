package report

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// CPU returns this process's use of memory and cores during a run of that wall time: its peak resident memory, and its
// CPU time as a share of all cores. It does not include plugins, which are separate processes.
func CPU(role string, wall time.Duration) (Memory, Utilization, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return Memory{}, Utilization{}, fmt.Errorf("resource usage of this process: %w", err)
	}
	busy := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return Memory{Device: "cpu", Role: role, ProcessPeakBytes: int64(u.Maxrss) << 10}, // Linux counts in KiB
		Utilization{Device: "cpu", Role: role, Mean: ratio(busy, wall*time.Duration(runtime.NumCPU()))}, nil
}

// cpuTime is the time of all cores that this process has taken; 0 if it is unknown.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cores returns the part of the time of all cores that the run took since training began: this process and its plugins.
// It is 0 before.
func (c *Collector) cores(r *Report) float64 {
	if c.walltime.training.IsZero() || c.trainedCPU == 0 {
		return 0
	}
	ended := c.walltime.ending
	if ended.IsZero() {
		ended = time.Now()
	}
	busy := c.endedCPU - c.trainedCPU
	for i := range r.Plugins {
		busy += time.Duration(r.Plugins[i].CPUS * float64(time.Second))
	}
	return min(1, ratio(busy, ended.Sub(c.walltime.training)*time.Duration(runtime.GOMAXPROCS(0))))
}
