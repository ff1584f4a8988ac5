package supervise

import "time"

// RestartPolicy says how often and how fast a process is replaced. The zero value means the defaults.
type RestartPolicy struct {
	// Limit restarts of one process within Window are allowed (0: 5 and one minute); one more, and the pool fails.
	Limit  int
	Window time.Duration
	// A process that was ready for Steady (0: 5 s) and answered a call is in no crash loop, whatever ends it then: it is
	// replaced at once and not counted.
	Steady time.Duration
	// The first restart within the window happens at once, the next after Backoff (0: 0.1 s), each further one after
	// twice the time of the one before, at most MaxBackoff (0: 5 s).
	Backoff, MaxBackoff time.Duration
}

func (p *RestartPolicy) setDefaults() {
	if p.Limit <= 0 {
		p.Limit = 5
	}
	setDefault(&p.Window, time.Minute)
	setDefault(&p.Steady, 5*time.Second)
	setDefault(&p.Backoff, 100*time.Millisecond)
	setDefault(&p.MaxBackoff, 5*time.Second)
}

// restarts applies the policy to one worker. Each worker counts for itself, so that an event that ends all processes of a
// large pool at once is no crash loop.
type restarts struct {
	policy RestartPolicy
	recent []time.Time // restarts within the window
}

// next records a restart at the time now, unless the process before was steady, and says how long to wait before it, or
// false when it is one too many.
func (r *restarts) next(now time.Time, steady bool) (wait time.Duration, ok bool) {
	if steady {
		return 0, true
	}
	for len(r.recent) > 0 && now.Sub(r.recent[0]) >= r.policy.Window {
		r.recent = r.recent[1:]
	}
	n := len(r.recent)
	if n >= r.policy.Limit {
		return 0, false
	}
	r.recent = append(r.recent, now)
	if n == 0 {
		return 0, true
	}
	wait = r.policy.Backoff
	for range n - 1 {
		wait = min(2*wait, r.policy.MaxBackoff)
	}
	return wait, true
}

// minDeadline is what a call is given at least, slack how many times the slowest one so far.
const (
	minDeadline = 30 * time.Second
	slack       = 20
)

// deadlines says how long a call may take.
type deadlines struct {
	fixed   time.Duration // Config.CallTimeout
	slowest time.Duration
}

func (d *deadlines) next() time.Duration {
	if d.fixed > 0 {
		return d.fixed
	}
	return max(minDeadline, slack*d.slowest)
}

func (d *deadlines) observe(took time.Duration) { d.slowest = max(d.slowest, took) }

// quota lets a number of log lines through per second: a plugin that floods its log must not fill the disk.
type quota struct {
	limit   int
	began   time.Time // of the current second
	used    int
	dropped int
}

// take reports whether another line may pass. dropped counts the lines lost before, once.
func (q *quota) take(now time.Time) (ok bool, dropped int) {
	if now.Sub(q.began) >= time.Second {
		dropped = q.dropped
		q.began, q.used, q.dropped = now, 0, 0
	}
	if q.used >= q.limit {
		q.dropped++
		return false, dropped
	}
	q.used++
	return true, dropped
}
