package watch

import (
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/stat"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

// Role is what some of the run's processes do on one GPU.
type Role struct {
	Name  string // Data or Model, the first word of its lines
	Place place.Role
	// Baseline is the memory that the role uses after its warm-up, in bytes; 0 means that it is measured.
	Baseline int64
	// Processes returns the current processes. It must be safe for concurrent use.
	Processes func() []Process
}

// The names of the roles.
const Data, Model = "Data", "Model"

// Process is one of the run's processes. Processes in its process group, which it has started, count as part of it.
type Process struct {
	Name string // for messages: "plugin codes"
	PID  int
	// Share is the part of the role's limit that it may use, in bytes; 0 means no limit.
	Share int64
	// Relieve makes it release memory between two batches, without waiting. reason is for the user: "it uses 3100 MB of
	// GPU 0, ...". The Watch's goroutine calls it.
	Relieve func(reason string)
}

// The growth of a role in bytes that causes a warning, and that causes an action. Source: the dual-GPU training of
// MyXTTSModel.
const (
	warnAt  = 200 * gpu.MB
	cleanAt = 500 * gpu.MB
)

// The warm-up of a process, in windows and in time. After it, the process has had batches of every length. A restarted
// plugin, for which no full ring slots wait, has had its first batches.
const (
	warmWindows = 20
	warmTime    = 30 * time.Second
)

// role is the Watch's state of a Role.
type role struct {
	Role
	log    *slog.Logger
	before int64 // what the card used at the start, in bytes
	busy   stat.Moments
	memory stat.Moments // of used, where it is known

	known      bool // memory use
	used, peak int64
	accounts   []*account
	warned     bool  // growth since the baselines
	failure    error // the last error, which was reported
}

// account is a role's state of one process.
type account struct {
	Process
	used     int64
	over     bool // it exceeded its share, and the role has acted
	warm     bool // whether baseline is set
	baseline int64
	since    time.Time // start of its warm-up
	window   int64     // and the window at that time
}

// reading is the result of one look.
type reading struct {
	processes []Process
	used      map[int]int64 // by PID of the run's processes
	card      int64         // memory use of the whole card
	unknown   bool          // the driver reports the memory of none of the run's processes
	hidden    bool          // and there is no replacement figure
	err       error
}

// read queries the driver.
func (r *role) read(inventory gpu.Inventory) (out reading) {
	out = reading{processes: r.Processes(), used: map[int]int64{}, unknown: true}
	card, err := inventory.Memory(r.Place.GPU.UUID)
	if err != nil {
		out.err, out.unknown = err, false
		return out
	}
	out.card = card.Used
	listed, err := inventory.Processes(r.Place.GPU.UUID)
	if err != nil {
		return out
	}
	for _, p := range listed {
		if pid := out.owner(p.PID); pid != 0 && p.Used >= 0 {
			out.used[pid] += p.Used
			out.unknown = false
		}
	}
	return out
}

// owner returns the run's process that a process is, or that has started it; 0 if it is not one of the run's.
func (r *reading) owner(pid int) int {
	is := func(pid int) bool {
		return slices.ContainsFunc(r.processes, func(p Process) bool { return p.PID == pid })
	}
	if is(pid) {
		return pid
	}
	if group, err := syscall.Getpgid(pid); err == nil && is(group) {
		return group
	}
	return 0
}

// useCard uses the growth of the whole card for the processes of a role. On a card with two roles, it does so for the
// last one.
func (r *role) useCard(in *reading, later []*role) {
	shared := slices.ContainsFunc(later, func(l *role) bool { return l.Place.GPU.UUID == r.Place.GPU.UUID })
	if shared || in.err != nil {
		in.processes, in.hidden = nil, true
		return
	}
	if len(in.processes) != 1 { // the use of each process is unknown
		in.processes = []Process{{Name: "all its processes", Share: r.Place.Limit}}
	}
	in.used[in.processes[0].PID] = max(0, in.card-r.before)
	in.unknown = false
}

// take records a reading.
func (r *role) take(in reading, window int64) {
	if in.err != nil {
		if r.failure == nil {
			r.log.Warn(fmt.Sprintf("the memory of %s GPU %d is not known: %v", r.Name, r.Place.GPU.Index, in.err))
		}
		r.failure, r.known = in.err, false
		return
	}
	before := r.accounts
	r.used, r.accounts, r.failure = 0, nil, nil
	r.known = !in.hidden
	for _, p := range in.processes {
		a := &account{Process: p, since: time.Now(), window: window}
		if at := slices.IndexFunc(before, func(b *account) bool { return b.PID == p.PID }); at >= 0 {
			a = before[at]
		} else if r.Baseline > 0 {
			a.warm, a.baseline = true, r.Baseline
		}
		a.used = in.used[p.PID]
		r.used += a.used
		r.accounts = append(r.accounts, a)
	}
	r.peak = max(r.peak, r.used)
}

// said returns the memory use of the role, and its limit or the size of the card.
func (r *role) said(step int64) *event.Memory {
	most := r.Place.Limit
	if most == 0 {
		most = r.Place.GPU.Memory
	}
	return &event.Memory{
		Step: step, Role: r.Name, GPU: r.Place.GPU.Index, Device: r.Place.GPU.Name, Used: r.used, Limit: most,
	}
}

// judge enforces the shares of processes, and detects growth.
func (r *role) judge(window int64) {
	if !r.known {
		return
	}
	var grown int64
	var worst *account
	for _, a := range r.accounts {
		r.hold(a, window)
		if !a.warm && window-a.window >= warmWindows && time.Since(a.since) >= warmTime {
			a.warm, a.baseline = true, a.used
		}
		if a.warm {
			grown += a.used - a.baseline
			if worst == nil || a.used-a.baseline > worst.used-worst.baseline {
				worst = a
			}
		}
	}
	switch {
	case grown < warnAt/2:
		r.warned = false
	case grown >= cleanAt:
		r.relieve(worst, window, fmt.Sprintf("it uses %d MB of GPU %d, %d MB more than after its warm-up",
			worst.used/gpu.MB, r.Place.GPU.Index, (worst.used-worst.baseline)/gpu.MB))
	case grown >= warnAt && !r.warned:
		r.warned = true
		r.log.Warn(fmt.Sprintf("%s GPU %d: memory has grown by %d MB to %d MB, most of it in %s; at %d MB of growth "+
			"that process must release memory",
			r.Name, r.Place.GPU.Index, grown/gpu.MB, r.used/gpu.MB, worst.Name, cleanAt/gpu.MB))
	}
}

// hold acts, once, on a process that uses more than its share.
func (r *role) hold(a *account, window int64) {
	over := a.Share > 0 && a.used > a.Share
	if over && !a.over {
		r.relieve(a, window,
			fmt.Sprintf("it uses %d MB of GPU %d, but may use %d", a.used/gpu.MB, r.Place.GPU.Index, a.Share/gpu.MB))
	}
	a.over = over
}

// relieve makes a process release memory. Its next baseline is what it uses after its next warm-up.
func (r *role) relieve(a *account, window int64, reason string) {
	a.cool(window)
	if a.Relieve == nil {
		r.log.Warn(fmt.Sprintf("%s GPU %d: %s: %s", r.Name, r.Place.GPU.Index, a.Name, reason))
		return
	}
	a.Relieve(reason)
}

// cool removes the baseline until the process has warmed up again.
func (a *account) cool(window int64) {
	a.warm, a.since, a.window = false, time.Now(), window
}
