package supervise

import (
	"math/bits"
	"time"
)

// Stats counts what a pool has done since it was created.
type Stats struct {
	Calls    uint64 // calls that reached a process
	Failed   uint64 // calls answered with an error
	Lost     uint64 // calls not answered because the process was lost
	Restarts uint64 // restarts of processes, including failed ones
	Cause    error  // of the last restart
	// P50 and P99 are percentiles of the duration of answered calls as measured by the host, including the wait inside
	// the plugin. They are accurate to 1/16. Slowest is exact.
	P50, P99, Slowest time.Duration
	// PeakMemory is the largest memory of one process that was measured, in bytes. Shared memory is not counted.
	PeakMemory int64
	// CPU is the time of all cores that the processes took that are up, since they accept calls.
	CPU time.Duration
	// Lines counts those that the processes have written to their standard error, also those that were not logged.
	Lines int
	// Growth is the trend of the memory of one process, in bytes per call, by least squares over its measurements after
	// the first 100 calls: of the process with the most of them. It is nil if there are too few.
	Growth *float64
	// Orphans counts processes that had left the group of a plugin process and were ended after it.
	Orphans int
}

// Stats returns the figures so far. It reads a file of each process, without delaying calls.
func (p *Pool) Stats() Stats {
	s, up := p.counted()
	for _, proc := range up { // of one that has ended meanwhile there is no time
		s.CPU += max(0, cpuOf(proc.child.cmd.Process.Pid)-proc.cpu)
	}
	return s
}

// counted returns the figures but for CPU, and the processes that are up.
func (p *Pool) counted() (s Stats, up []*process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s = p.stats
	s.P50, s.P99, s.Slowest = p.calls.quantile(0.50), p.calls.quantile(0.99), p.slowest
	line := p.memory
	for _, w := range p.workers {
		if w.proc != nil {
			line = longer(line, w.proc.watched())
			s.PeakMemory = max(s.PeakMemory, w.proc.peak.Load())
			s.Lines += w.proc.journal.written()
			if w.up {
				up = append(up, w.proc)
			}
		}
	}
	if growth, ok := line.slope(); ok {
		s.Growth = &growth
	}
	return s, up
}

// Memory measures the memory that the first process uses now, in bytes, as PeakMemory; 0 if it is not up.
func (p *Pool) Memory() int64 {
	for _, proc := range p.processes() {
		return proc.measure()
	}
	return 0
}

// processes returns the processes that have not ended.
func (p *Pool) processes() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*process
	for _, w := range p.workers {
		if w.proc != nil {
			all = append(all, w.proc)
		}
	}
	return all
}

// Workers returns the number of processes of the pool when all are up, with those that are being started or ended.
func (p *Pool) Workers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.workers)
}

// Running is a process that accepts calls.
type Running struct {
	ProcessID
	PID int
}

// Running returns the processes that are up, by worker, to account for device memory.
func (p *Pool) Running() []Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Running
	for _, w := range p.workers {
		if w.up {
			all = append(all, Running{w.proc.id, w.proc.child.cmd.Process.Pid})
		}
	}
	return all
}

// PIDs returns the process ids of the processes that are up.
func (p *Pool) PIDs() []int {
	var pids []int
	for _, r := range p.Running() {
		pids = append(pids, r.PID)
	}
	return pids
}

// histogram counts durations in buckets whose width is 1/16 of the next lower power of two. It uses constant memory and
// does not allocate.
type histogram struct {
	counts [64 * 16]uint64
	total  uint64
}

func bucketOf(d time.Duration) int {
	n := uint64(max(0, d))
	if n < 16 {
		return int(n)
	}
	shift := bits.Len64(n) - 5 // leaves five bits, the first of which is 1
	return (shift+1)*16 + int(n>>shift) - 16
}

// upper returns the upper end of a bucket.
func upper(bucket int) time.Duration {
	if bucket < 16 {
		return time.Duration(bucket)
	}
	shift := bucket/16 - 1
	return time.Duration((uint64(bucket%16)+17)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
}

// quantile returns the duration that the share q of all durations does not exceed, or 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	want := uint64(q * float64(h.total))
	var seen uint64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= want {
			return upper(i)
		}
	}
	return 0
}
