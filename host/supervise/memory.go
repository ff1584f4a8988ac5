package supervise

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// memoryHint is the hint for a process that uses too much memory.
const memoryHint = "allow more with --plugin-memory SIZE, or use fewer rows (--batch-size); report.json has the peak of each plugin"

// watchMemory measures the memory of the process until it ends, and kills it above the limit. A limit of the address
// space (RLIMIT_AS) is no alternative: programs reserve far more of it than they use, those of Go and CUDA above all.
func (p *process) watchMemory() {
	t := time.NewTicker(p.cfg.MemoryInterval)
	defer t.Stop()
	for {
		reapZombies()
		if used := p.measure(); p.cfg.MemoryLimit > 0 && used > p.cfg.MemoryLimit {
			p.kill(fmt.Sprintf("it uses %d MB of memory, and may use %d", used>>20, p.cfg.MemoryLimit>>20), memoryHint)
			return
		}
		select {
		case <-p.ctx.Done():
			return
		case <-t.C:
		}
	}
}

// measure returns the memory that the process uses now, and keeps the peak.
func (p *process) measure() int64 {
	used := memoryOf(p.child.cmd.Process.Pid)
	storeMax(&p.peak, used)
	return used
}

// memoryOf returns the resident memory of a process without the memory that it shares, such as the ring. It is 0 if the
// process has ended.
func memoryOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	var total int64
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		var kib int64
		for _, name := range []string{"RssAnon", "RssFile"} {
			if n, _ := fmt.Sscanf(lines.Text(), name+": %d kB", &kib); n == 1 {
				total += kib << 10
			}
		}
	}
	return total
}

func storeMax(to *atomic.Int64, value int64) {
	for had := to.Load(); value > had && !to.CompareAndSwap(had, value); {
		had = to.Load()
	}
}
