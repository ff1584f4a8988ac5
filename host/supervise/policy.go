package supervise

import (
	"fmt"
	"time"
)

// RestartPolicy tells bad luck from a crash loop, for each worker of a pool by itself, and says how fast a process is
// replaced. The zero value means the defaults.
//
// Two things are a crash loop: Limit restarts within Window and then another end, and Limit restarts in a row without a
// finished batch, however long they take. A process that ends after it has finished batches and worked for Settled is
// replaced without being counted: somebody, or the machine, ends it every now and then, and the run goes on between. That
// the same batch ends it every time is not seen here, for other batches may be finished between: the caller knows its batches.
type RestartPolicy struct {
	// Limit and Window: 0 means 5 and one minute.
	Limit  int
	Window time.Duration
	// Settled: 0 means 5 s.
	Settled time.Duration
	// The first restart within the window happens at once, the next after Backoff (0: 0.1 s), each further one after
	// twice the time of the one before, at most MaxBackoff (0: 5 s).
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

// restarts applies the policy to one worker. Each worker counts for itself, so that an event that ends all processes of a
// large pool at once is no crash loop.
type restarts struct {
	policy RestartPolicy
	recent []time.Time // restarts within the window that count
	barren int         // restarts in a row without a finished batch between
}

// life is what a process did before it ended. The zero value is that of one that did not start.
type life struct {
	up       time.Duration // since it took calls
	finished bool          // a batch at least
}

// next records a restart at the time now of a process that has ended, and says how long to wait before it. When it is one
// too many, loop says why; otherwise loop is empty.
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

// What a call is given when no limit is configured: minDeadline at least, slack times what 99 of 100 calls of its stage take.
// A quantile, because the slowest call would let one that waited for a suspended machine allow anything from then on.
const (
	minDeadline = 30 * time.Second
	slack       = 20
	firstCalls  = 100 // after so many the quantile means something
)

// deadlines says how long a call of one stage instance may take.
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

// quota lets a number of log lines and of bytes through per second: a plugin that floods its log must not fill the disk.
type quota struct {
	lines, bytes int       // per second
	began        time.Time // of the current second
	used, size   int       // lines and bytes of it so far
	dropped      int
}

// take reports whether another line, of so many bytes, may pass. dropped counts the lines lost before, once.
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
