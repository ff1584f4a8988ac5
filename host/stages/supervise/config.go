package supervise

import (
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Config describes a pool. Plugin, Ring and Configure are required.
type Config struct {
	// Plugin is a startable entry of the catalog.
	Plugin catalog.Entry
	// Workers is the number of processes; 0 means 1.
	Workers int
	// InFlight is the maximum number of calls that a process has at a time; 0 means the number of CPUs, but at least 4.
	// Other calls wait in the order of Request.Order, so the batch that is trained on next does not wait for batches
	// that were decoded early.
	InFlight int
	// Ring is inherited by every process. The caller keeps it open until Close has returned.
	Ring *ring.Ring
	// Configure is sent to every process, also after a restart. It must not be modified. Its device_uuid is the only
	// GPU that the processes see; if it is empty, they see none.
	Configure *stagepb.ConfigureRequest
	// ORTLibrary is the path of the ONNX Runtime library, for stages that run graphs. If it is empty, the stages find
	// the library themselves.
	ORTLibrary string
	// Logger gets state changes and the plugin's own log lines, with their levels. If it is nil, they are discarded.
	Logger *slog.Logger

	// StartTimeout bounds the time from start to handshake (0: 30 s), ConfigureTimeout each of Configure and Attach (0:
	// 60 s).
	StartTimeout, ConfigureTimeout time.Duration
	// CallTimeout bounds a call. 0 means a separate limit for each stage instance: ConfigureTimeout for the first 100
	// calls, which may still compile or load, and then 30 s, or 20 times the 99th percentile of its call times if that
	// is more.
	CallTimeout time.Duration
	// DrainTimeout bounds the end of a process, from the request to end (0: 10 s). It also bounds a call in flight
	// whose context ends.
	DrainTimeout time.Duration
	// HealthInterval is the time between two health checks of a process (0: 10 s), HealthTimeout the time for the
	// answer (0: 5 s). So a hanging process is detected even if it has no call in flight.
	HealthInterval, HealthTimeout time.Duration
	// MemoryLimit is the memory in bytes that a process may use on the CPU, without what it shares; 0 means no limit. A
	// process that is found above it is replaced. MemoryInterval is the time between two measurements (0: 1 s).
	MemoryLimit    int64
	MemoryInterval time.Duration
	// Sandbox says whether the processes are confined (package sandbox); "" is sandbox.Auto.
	Sandbox sandbox.Mode
	// Pause stops each process while it has no call, so that it can write to the ring only during its calls. A process
	// that is stopped answers no health checks, so there are none.
	Pause bool
	// Debug, if not nil, switches off all deadlines of processes, so that a debugger may stop them, and is called with
	// a line for each process that starts, which says how to attach to it. It is not for Pause, which stops processes
	// itself. Calls may be concurrent.
	Debug func(line string)
	// Restart is the policy for replacing processes.
	Restart RestartPolicy
	// Reached, if not nil, is called when a process reaches a phase. The process waits in the phase until it returns.
	// Tests use it to inject faults. Calls may be concurrent.
	Reached func(phase Phase, id ProcessID, pid int)

	tasks    int             // sandbox.Policy.MaxTasks
	awake    *awake          // of the pool
	readable func() []string // readablePaths, computed once
	reaper   reaper
}

func (c *Config) setDefaults() error {
	switch {
	case !c.Plugin.Startable() || len(c.Plugin.Command) == 0:
		return errors.New(
			"the catalog does not allow it to be started: " + string(c.Plugin.State) + " " + c.Plugin.Reason)
	case c.Ring == nil || c.Configure == nil:
		return errors.New("a pool needs a ring and a configuration")
	}
	c.Workers = max(1, c.Workers)
	if c.InFlight == 0 {
		c.InFlight = max(4, runtime.NumCPU())
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Debug != nil {
		if c.Pause {
			return errors.New("a process that the host stops between two batches cannot be debugged")
		}
		c.withoutDeadlines()
	}
	setDefault(&c.StartTimeout, 30*time.Second)
	setDefault(&c.ConfigureTimeout, 60*time.Second)
	setDefault(&c.DrainTimeout, 10*time.Second)
	setDefault(&c.HealthInterval, 10*time.Second)
	setDefault(&c.HealthTimeout, 5*time.Second)
	setDefault(&c.MemoryInterval, time.Second)
	c.Restart.setDefaults()
	c.readable = sync.OnceValue(c.readablePaths)
	if c.reaper.kill == nil {
		c.reaper = reaper{unix.Kill, readEnviron, killTimeout / 2}
	}
	return nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}
