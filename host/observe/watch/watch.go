package watch

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/stat"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

// Config says what is watched.
type Config struct {
	// Inventory is closed with the Watch, or if New fails.
	Inventory gpu.Inventory
	Roles     []Role
	// Log gets the warnings. Say gets the memory use of each role, at every look and, with the number of the step, when
	// a line is due. The Watch's goroutine calls both.
	Log *slog.Logger
	Say func(*event.Memory)
}

// interval is the time between two looks. The driver's figure of GPU utilization covers up to a second.
const interval = time.Second

// Watch observes GPUs in the background from Start to Close. A nil Watch, for a run on the CPU, does nothing.
//
// The trainer calls Window, which never waits. One goroutine must call New, Start, Close and Figures.
type Watch struct {
	cfg   Config
	roles []*role
	blind bool // the driver does not know the run's processes, and that was reported

	windows atomic.Int64
	wake    chan struct{} // of capacity 1: steps are due

	mu  sync.Mutex // guards due
	due []int64    // steps whose lines have to be written

	started bool
	once    sync.Once
	stop    chan struct{}
	done    chan struct{}
	err     error // the error of Close
}

// New records what the cards use before the run uses them.
func New(cfg Config) (*Watch, error) {
	w := &Watch{cfg: cfg, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	for _, r := range cfg.Roles {
		use, err := cfg.Inventory.Memory(r.Place.GPU.UUID)
		if err != nil {
			cfg.Inventory.Close()
			return nil, fmt.Errorf("watch %s: %w", r.Place.GPU, err)
		}
		w.roles = append(w.roles, &role{Role: r, log: cfg.Log, before: use.Used})
	}
	return w, nil
}

// Start begins to observe. Figures do not include what the GPUs did before.
func (w *Watch) Start() {
	if w == nil {
		return
	}
	w.started = true
	go w.run()
}

// Used asks the driver how much memory, in bytes, the processes of a role use at present. If the driver does not report
// it, the growth of the whole card since New is used instead, unless another role is on the same card. known is false
// for a nil Watch. It is safe for concurrent use.
func (w *Watch) Used(name string) (used int64, known bool) {
	if w == nil {
		return 0, false
	}
	at := slices.IndexFunc(w.roles, func(r *role) bool { return r.Name == name })
	if at < 0 {
		return 0, false
	}
	r := w.roles[at]
	in := r.read(w.cfg.Inventory)
	switch {
	case in.err != nil:
		return 0, false
	case in.unknown:
		alone := !slices.ContainsFunc(w.roles,
			func(o *role) bool { return o != r && o.Place.GPU.UUID == r.Place.GPU.UUID })
		return max(0, in.card-r.before), alone
	}
	for _, n := range in.used {
		used += n
	}
	return used, true
}

// Window reports every finished step. due asks for the lines of the step.
func (w *Watch) Window(step int64, due bool) {
	if w == nil {
		return
	}
	w.windows.Add(1)
	if !due {
		return
	}
	w.mu.Lock()
	w.due = append(w.due, step)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it is already awake
	}
}

// Close stops observing, writes the lines that are due and closes the inventory. It is idempotent.
func (w *Watch) Close() error {
	if w == nil {
		return nil
	}
	w.once.Do(func() {
		close(w.stop)
		if w.started {
			<-w.done
		}
		w.err = w.cfg.Inventory.Close()
	})
	return w.err
}

// Figures are the figures of one role.
type Figures struct {
	Role  string
	Place place.Role
	// Peak is the most memory that its processes used together, in bytes; 0 if it is unknown.
	Peak int64
	// Busy is the mean utilization of the GPU, 0 to 1, by all processes. BusyStd is the standard deviation of the
	// Samples, one per second.
	Busy, BusyStd float64
	Samples       int
	// Memory is that of its processes together, in bytes: one sample a second, none if it is unknown.
	Memory stat.Moments
}

// Figures returns the figures of every role. Call it after Close.
func (w *Watch) Figures() []Figures {
	if w == nil {
		return nil
	}
	var all []Figures
	for _, r := range w.roles {
		all = append(all, Figures{
			Role: r.Name, Place: r.Place, Peak: r.peak, Busy: r.busy.Mean, BusyStd: r.busy.Std(),
			Samples: int(r.busy.N), Memory: r.memory,
		})
	}
	return all
}

func (w *Watch) run() {
	defer close(w.done)
	t := time.NewTicker(interval)
	defer t.Stop()
	var faults <-chan gpu.Fault // nil if the driver reports none, as under some hypervisors
	if watcher, err := w.cfg.Inventory.Watch(); err == nil {
		defer watcher.Close()
		faults = watcher.Faults()
	}
	w.look()
	w.measure()
	for {
		select {
		case <-w.stop:
			w.write()
			return
		case f, ok := <-faults:
			if !ok {
				faults = nil
				continue
			}
			w.warn(f)
		case <-w.wake:
			w.write()
		case <-t.C:
			w.look()
			w.say(0)
			w.measure()
			w.judge()
		}
	}
}

// warn logs a fault of one of the run's GPUs, or of a GPU that is lost and has no name any more.
func (w *Watch) warn(f gpu.Fault) {
	for _, r := range w.roles {
		if f.UUID != "" && f.UUID != r.Place.GPU.UUID {
			continue
		}
		what := fmt.Sprintf("%s: %s", r.Place.GPU, f)
		if f.Hardware() {
			what += "; the card is at fault, not a program"
		}
		w.cfg.Log.Warn(what)
		return // the other role may use the same GPU
	}
}

// write writes the lines of the steps that are due, all with the current memory use.
func (w *Watch) write() {
	w.mu.Lock()
	due := w.due
	w.due = nil
	w.mu.Unlock()
	if len(due) == 0 {
		return
	}
	w.look()
	for _, step := range due {
		w.say(step)
	}
}

// say passes on what is known of every role.
func (w *Watch) say(step int64) {
	for _, r := range w.roles {
		if r.known {
			w.cfg.Say(r.said(step))
		}
	}
}

// look reads the memory use of every role.
func (w *Watch) look() {
	all := make([]reading, len(w.roles))
	blind := len(w.roles) > 0
	for i, r := range w.roles {
		all[i] = r.read(w.cfg.Inventory)
		blind = blind && all[i].unknown
	}
	if blind && !w.blind {
		w.blind = true
		w.cfg.Log.Warn("the driver does not report the GPU memory of our processes: the growth of each card's memory " +
			"use since the start is used instead (this happens in a container with its own process ids; --pid=host " +
			"avoids it)")
	}
	for i, r := range w.roles {
		if blind {
			r.useCard(&all[i], w.roles[i+1:])
		}
		r.take(all[i], w.windows.Load())
	}
}

// measure takes a sample of the utilization of the GPUs, and of the memory that look has read.
func (w *Watch) measure() {
	for _, r := range w.roles {
		// a part of a card (MIG) has no such figure
		if u, err := w.cfg.Inventory.Utilization(r.Place.GPU.UUID); err == nil {
			r.busy.Add(u.GPU)
		}
		if r.known {
			r.memory.Add(float64(r.used))
		}
	}
}

// judge acts on the readings.
func (w *Watch) judge() {
	for _, r := range w.roles {
		r.judge(w.windows.Load())
	}
}
