package supervise

import (
	"errors"
	"log/slog"
	"runtime"
	"time"

	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Config describes a pool. Plugin, Ring and Configure are needed.
type Config struct {
	// Plugin is a startable entry of the catalog.
	Plugin catalog.Entry
	// Workers is the number of processes; 0 means 1.
	Workers int
	// InFlight is the number of calls that a process gets at a time; 0 means the number of CPUs, at least 4. Others wait, in the order of
	// Request.Order: so the batch that is trained on next is not behind all that were decoded early.
	InFlight int
	// Ring is inherited by every process. The caller keeps it open until Close has returned.
	Ring *ring.Ring
	// Configure is sent to every process, also after a restart. It must not change any more. Its device_uuid is
	// the only GPU that the processes see; without one they see none.
	Configure *stagepb.ConfigureRequest
	// ORTLibrary is the file of ONNX Runtime's library, for stages that run graphs; empty leaves it to them.
	ORTLibrary string
	// Logger gets state changes and the plugin's own log lines, with their levels; nil discards them.
	Logger *slog.Logger

	// StartTimeout bounds start to handshake (0: 30 s), ConfigureTimeout each of Configure and Attach (0: 60 s).
	StartTimeout, ConfigureTimeout time.Duration
	// CallTimeout bounds a call. 0 means a limit of its own for each stage instance: ConfigureTimeout for the first 100 calls,
	// which may still compile or load, and then the greater of 30 s and 20 times what 99 of 100 of its calls take.
	CallTimeout time.Duration
	// DrainTimeout bounds the end of a process from the moment that it is asked (0: 10 s). A call whose context ends while it
	// is in flight has that much time left, too.
	DrainTimeout time.Duration
	// HealthInterval is the time between two questions after a process's health (0: 10 s), HealthTimeout what it has for
	// the answer (0: 5 s). So a process that hangs is found also while it has no call in flight.
	HealthInterval, HealthTimeout time.Duration
	// Restart says how processes that end are replaced.
	Restart RestartPolicy
	// Reached, if set, is told where a process stands, and the process waits there until it returns. For tests that
	// break a run at a chosen point. Calls overlap.
	Reached func(phase Phase, id ProcessID, pid int)
}

func (c *Config) setDefaults() error {
	switch {
	case !c.Plugin.Startable() || len(c.Plugin.Command) == 0:
		return errors.New("the catalog does not allow it to be started: " + string(c.Plugin.State) + " " + c.Plugin.Reason)
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
	setDefault(&c.StartTimeout, 30*time.Second)
	setDefault(&c.ConfigureTimeout, 60*time.Second)
	setDefault(&c.DrainTimeout, 10*time.Second)
	setDefault(&c.HealthInterval, 10*time.Second)
	setDefault(&c.HealthTimeout, 5*time.Second)
	c.Restart.setDefaults()
	return nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}
