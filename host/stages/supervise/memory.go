package supervise

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// memoryHint is the hint for a process that uses too much memory.
const memoryHint = "allow more with --plugin-memory SIZE, or use fewer rows (--batch-size); report.json has the peak " +
	"of each plugin"

// watchMemory measures the memory of the process until it ends, and kills it above the limit. A limit of the address
// space (RLIMIT_AS) is no alternative: programs reserve far more of it than they use, those of Go and CUDA above all.
func (p *process) watchMemory() {
	t := time.NewTicker(p.cfg.MemoryInterval)
	defer t.Stop()
	for {
		reapZombies()
		if used := p.measure(); p.cfg.MemoryLimit > 0 && used > p.cfg.MemoryLimit {
			p.kill(overLimit(used, p.cfg.MemoryLimit), memoryHint)
			return
		}
		select {
		case <-p.ctx.Done():
			return
		case <-t.C:
		}
	}
}

// overLimit has both amounts in the unit of the limit: a size with a decimal unit, such as 300MB, or a number of MiB.
func overLimit(used, limit int64) string {
	unit, name := int64(1<<20), "MiB"
	if limit%unit != 0 && limit%1e6 == 0 {
		unit, name = 1e6, "MB"
	}
	return fmt.Sprintf("it uses %.1f %s of memory, and may use %.1f %[2]s", float64(used)/float64(unit), name,
		float64(limit)/float64(unit))
}

// measure returns the memory that the process uses now, and keeps the peak and the trend.
func (p *process) measure() int64 {
	used := memoryOf(p.child.cmd.Process.Pid)
	storeMax(&p.peak, used)
	p.mu.Lock()
	p.memory.add(p.served, used)
	p.mu.Unlock()
	return used
}

// memoryOf returns the resident memory of a process without the memory that it shares, such as the ring. It is 0 if the
// process has ended.
func memoryOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	return kibibytes(status, "RssAnon") + kibibytes(status, "RssFile")
}

// kibibytes returns the bytes that a line such as "RssAnon:	    1024 kB" of /proc/PID/status reports, or 0.
func kibibytes(status []byte, name string) int64 {
	_, after, _ := bytes.Cut(status, []byte("\n"+name+":"))
	value, _, _ := bytes.Cut(bytes.TrimSpace(after), []byte(" "))
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

func storeMax(to *atomic.Int64, value int64) {
	for had := to.Load(); value > had && !to.CompareAndSwap(had, value); {
		had = to.Load()
	}
}

// cpuOf returns the time of all cores that a process has taken, its own children aside. It is 0 if the process has
// ended.
func cpuOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	const user, system, tick = 11, 12, time.Second / 100 // the kernel reports hundredths of a second on all machines
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0
	}
	ticks := 0
	for _, i := range []int{user, system} {
		n, err := strconv.Atoi(string(fields[i]))
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}
