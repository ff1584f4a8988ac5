package watch

import (
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/place"
	"github.com/xtts-host/xtts-host/host/stat"
)

// Role is what some of our processes do on one GPU.
type Role struct {
	Name  string // as lines begin: "Data", "Model"
	Place place.Role
	// Baseline is what the role uses when it is warm, in bytes; 0 has it measured.
	Baseline int64
	// Processes lists those that there are now. Any goroutine may call it.
	Processes func() []Process
}

// Process is one of ours. The processes that it has started, which are of its process group, count as one with it.
type Process struct {
	Name string // for people: "plugin codes"
	PID  int
	// Share is what it may use of the role's limit, in bytes; 0: no limit.
	Share int64
	// Relieve has it give memory back between two batches, and does not wait for that. reason says for people why: "it uses
	// 3100 MB of GPU 0, ...". It comes from the Watch's goroutine.
	Relieve func(reason string)
}

// The growth of a role in bytes that brings a warning, and that is acted upon. Source: the dual-GPU training of MyXTTSModel.
const (
	warnAt  = 200 * gpu.MB
	cleanAt = 500 * gpu.MB
)

// A process is warm after so many windows and so much time: by then it has had batches of every length, and a plugin that was
// started anew, for which full ring slots wait no longer, its first ones.
const (
	warmWindows = 20
	warmTime    = 30 * time.Second
)

// role is a Role as the Watch knows it.
type role struct {
	Role
	log    *slog.Logger
	before int64 // what the card used at the start, in bytes
	busy   stat.Moments

	known      bool // used is
	used, peak int64
	accounts   []*account
	warned     bool  // of the growth since the baselines
	failure    error // the last, which was said
}

// account is what a role knows of one process.
type account struct {
	Process
	used     int64
	over     bool // its share, and that was acted upon
	warm     bool // and baseline holds
	baseline int64
	since    time.Time // it is getting warm since then
	window   int64     // and that window
}

// reading is what one look finds.
type reading struct {
	processes []Process
	used      map[int]int64 // by PID of processes
	card      int64         // what the whole card uses
	unknown   bool          // none of our processes is listed with what it uses
	hidden    bool          // and nothing stands in for them
	err       error
}

// read asks the driver.
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

// owner returns the process of ours that a process is, or that has started it; 0 when it is none of ours.
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

// stand lets the whole card stand in for the processes of a role. On a card with two roles it does so for the one that comes last.
func (r *role) stand(in *reading, later []*role) {
	shared := slices.ContainsFunc(later, func(l *role) bool { return l.Place.GPU.UUID == r.Place.GPU.UUID })
	if shared || in.err != nil {
		in.processes, in.hidden = nil, true
		return
	}
	if len(in.processes) != 1 { // nobody knows which of them uses how much
		in.processes = []Process{{Name: "all its processes", Share: r.Place.Limit}}
	}
	in.used[in.processes[0].PID] = max(0, in.card-r.before)
	in.unknown = false
}

// take keeps what a look has found.
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

// memory is what the role uses, of its limit or of the whole card.
func (r *role) memory(step int64) *event.Memory {
	most := r.Place.Limit
	if most == 0 {
		most = r.Place.GPU.Memory
	}
	return &event.Memory{Step: step, Role: r.Name, GPU: r.Place.GPU.Index, Device: r.Place.GPU.Name, Used: r.used, Limit: most}
}

// judge holds processes to their shares, and looks for growth.
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
		r.relieve(worst, window, fmt.Sprintf("it uses %d MB of GPU %d, %d MB more than when it was warm", worst.used/gpu.MB, r.Place.GPU.Index, (worst.used-worst.baseline)/gpu.MB))
	case grown >= warnAt && !r.warned:
		r.warned = true
		r.log.Warn(fmt.Sprintf("%s GPU %d: memory has grown by %d MB to %d MB, most of it in %s; at %d MB it is made to give it back",
			r.Name, r.Place.GPU.Index, grown/gpu.MB, r.used/gpu.MB, worst.Name, cleanAt/gpu.MB))
	}
}

// hold acts, once, on a process that uses more than its share.
func (r *role) hold(a *account, window int64) {
	over := a.Share > 0 && a.used > a.Share
	if over && !a.over {
		r.relieve(a, window, fmt.Sprintf("it uses %d MB of GPU %d, and may use %d", a.used/gpu.MB, r.Place.GPU.Index, a.Share/gpu.MB))
	}
	a.over = over
}

// relieve has a process give memory back. What it uses when it is warm again is its baseline.
func (r *role) relieve(a *account, window int64, reason string) {
	a.cool(window)
	if a.Relieve == nil {
		r.log.Warn(fmt.Sprintf("%s GPU %d: %s: %s", r.Name, r.Place.GPU.Index, a.Name, reason))
		return
	}
	a.Relieve(reason)
}

// cool takes the baseline away until the process has had time to get warm.
func (a *account) cool(window int64) {
	a.warm, a.since, a.window = false, time.Now(), window
}
