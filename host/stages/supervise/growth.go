package supervise

// A process allocates what it keeps during its first calls. Its memory counts after them.
const (
	warmCalls   = 100
	trendPoints = 10 // measurements, at least, and calls between the first and the last
	trendCalls  = 100
)

// trend is the line of least squares through the memory of a process over its calls.
type trend struct {
	n, x, y, xx, xy float64 // sums; x counts calls from first, y bytes from base
	first, last     int     // calls
	base            float64
}

// add takes a measurement after so many calls. Those without a call since the last one say nothing of a call, and one
// of 0 is of a process that has ended.
func (t *trend) add(calls int, bytes int64) {
	if calls < warmCalls || t.n > 0 && calls == t.last || bytes == 0 {
		return
	}
	if t.n == 0 {
		t.first, t.base = calls, float64(bytes)
	}
	x, y := float64(calls-t.first), float64(bytes)-t.base
	t.n, t.x, t.y, t.xx, t.xy, t.last = t.n+1, t.x+x, t.y+y, t.xx+x*x, t.xy+x*y, calls
}

// calls is the number of calls that the line is about.
func (t *trend) calls() int { return t.last - t.first }

// slope returns the bytes per call, if there are enough measurements.
func (t *trend) slope() (bytes float64, ok bool) {
	if t.n < trendPoints || t.calls() < trendCalls {
		return 0, false
	}
	return (t.n*t.xy - t.x*t.y) / (t.n*t.xx - t.x*t.x), true
}

// watched returns the trend of the process so far.
func (p *process) watched() trend {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memory
}

// longer returns the trend that is about more calls.
func longer(a, b trend) trend {
	if b.calls() > a.calls() {
		return b
	}
	return a
}

// remember keeps the peak and the trend of a process that has ended. It requires mu.
func (p *Pool) remember(proc *process) {
	p.stats.PeakMemory = max(p.stats.PeakMemory, proc.peak.Load())
	p.memory = longer(p.memory, proc.watched())
}
