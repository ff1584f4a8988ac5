package supervise

import (
	"fmt"
	"time"
)

// RestartPolicy distinguishes occasional restarts from a crash loop, separately for each worker of a pool, and sets the
// delays of restarts. The zero value means the defaults.
//
// Two things are a crash loop: Limit restarts within Window and then another end, and Limit restarts in a row without a
// finished batch, however long they take. A process that had finished batches and had worked for Settled is replaced
// without being counted: if something kills it from time to time, the run continues. The policy does not detect that
// the same batch ends the process every time, because other batches may be finished in between. The caller must detect
// that.
type RestartPolicy struct {
	// Limit and Window: 0 means 5 and one minute.
	Limit  int
	Window time.Duration
	// Settled: 0 means 5 s.
	Settled time.Duration
	// The first restart within the window happens at once. The next one waits for Backoff (0: 0.1 s), each further one
	// twice as long as the previous one, but at most MaxBackoff (0: 5 s).
	Backoff, MaxBackoff time.Duration
}

func (p *RestartPolicy) setDefaults() {
	if p.Limit <= 0 {
		p.Limit = 5
	}
	setDefault(&p.Window, time.Minute)
	setDefault(&p.Settled, 5*time.Second)
	setDefault(&p.Backoff, 100*time.Millisecond)
	setDefault(&p.MaxBackoff, 5*time.Second)
}

// restarts applies the policy to one worker. Workers are counted separately, so an event that ends all processes of a
// large pool at once is not a crash loop.
type restarts struct {
	policy RestartPolicy
	recent []time.Time // counted restarts within the window
	barren int         // consecutive restarts without a finished batch
}

// life describes what a process did before it ended. The zero value is a process that did not start.
type life struct {
	up       time.Duration // time since it accepted calls
	finished bool          // it finished at least one batch
}

// next records a restart, at the time now, of a process that has ended. It returns the delay before the restart. If
// there were too many restarts, loop says why; otherwise loop is empty.
func (r *restarts) next(now time.Time, ended life) (wait time.Duration, loop string) {
	if ended.finished {
		r.barren = 0
		if ended.up >= r.policy.Settled {
			return 0, ""
		}
	}
	for len(r.recent) > 0 && now.Sub(r.recent[0]) >= r.policy.Window {
		r.recent = r.recent[1:]
	}
	switch {
	case len(r.recent) >= r.policy.Limit:
		return 0, fmt.Sprintf("%d restarts within %v were not enough", len(r.recent), r.policy.Window)
	case r.barren >= r.policy.Limit:
		return 0, fmt.Sprintf("%d restarts in a row without a finished batch", r.barren)
	}
	n := max(len(r.recent), r.barren)
	r.recent = append(r.recent, now)
	r.barren++
	if n == 0 {
		return 0, ""
	}
	wait = r.policy.Backoff
	for range n - 1 {
		wait = min(2*wait, r.policy.MaxBackoff)
	}
	return wait, ""
}

// The deadline of a call if no limit is configured: at least minDeadline, and slack times the 99th percentile of the
// call times of its stage. It is not the maximum, because one call that waited for a suspended machine would make all
// later deadlines too long.
const (
	minDeadline = 30 * time.Second
	slack       = 20
	firstCalls  = 100 // the minimum for a meaningful percentile
)

// deadlines computes the deadline of the calls of one stage instance.
type deadlines struct {
	fixed time.Duration // Config.CallTimeout
	first time.Duration // for the first calls
	took  histogram
}

func (d *deadlines) next() time.Duration {
	switch {
	case d.fixed > 0:
		return d.fixed
	case d.took.total < firstCalls:
		return max(minDeadline, d.first)
	}
	return max(minDeadline, slack*d.took.quantile(0.99))
}

func (d *deadlines) observe(took time.Duration) { d.took.add(took) }

// quota limits the log lines and bytes per second, so a plugin that floods its log does not fill the disk.
type quota struct {
	lines, bytes int       // per second
	began        time.Time // of the current second
	used, size   int       // lines and bytes in the current second
	dropped      int
}

// take reports whether another line, of so many bytes, may pass. dropped is the number of lines dropped before; each is
// reported once.
func (q *quota) take(now time.Time, bytes int) (ok bool, dropped int) {
	if now.Sub(q.began) >= time.Second {
		dropped = q.dropped
		q.began, q.used, q.size, q.dropped = now, 0, 0, 0
	}
	if q.used >= q.lines || q.size+bytes > q.bytes {
		q.dropped++
		return false, dropped
	}
	q.used++
	q.size += bytes
	return true, dropped
}
