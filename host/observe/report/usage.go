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
