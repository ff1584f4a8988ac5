package boards

import (
	"log/slog"
	"os"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/dashboard"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/prometheus"
	"github.com/xtts-host/xtts-host/host/observe/systemd"
	"github.com/xtts-host/xtts-host/host/run/loop"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
)

// Served are the servers of a run. They end with the bus.
type Served struct {
	figures  *prometheus.Server // nil if they are not served; so is the page
	page     *dashboard.Server
	unusable func() int // clips
}

// Serve tells others of a run from now on: systemd if it asks for it, and who asks at the addresses of --metrics and
// --dashboard. Of several ranks, the first does. All of it ends with the bus.
func Serve(c *config.Config, leads bool, bus *event.Bus, log *slog.Logger) (_ *Served, err error) {
	s := &Served{unusable: func() int { return 0 }}
	if !leads {
		return s, nil
	}
	warn := func(text string) { log.Warn(text) }
	if n := systemd.Open(warn); n != nil {
		bus.Offer("systemd", n, warn)
	}
	if c.Metrics != "" {
		if s.figures, err = prometheus.Listen(c.Metrics, c.Version); err != nil {
			return nil, err
		}
		bus.Offer("metrics", s.figures, warn)
	}
	if c.Dashboard != "" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		if s.page, err = dashboard.Listen(dashboard.Config{
			Flag: dashboard.Flag, Address: c.Dashboard, Program: program, Asks: synthesize.Asks,
			Warn: warn,
		}); err != nil {
			return nil, err
		}
		bus.Offer("dashboard", s.page, warn)
		bus.Publish(&event.Message{Text: "dashboard    " + s.page.URL() + "\n"})
	}
	return s, nil
}

// Show gives the page the folder of the run.
func (s *Served) Show(dir string) { s.page.Show(dir) }

// Quarantined takes what counts the clips that cannot be used.
func (s *Served) Quarantined(count func() int) {
	s.figures.Quarantined(count)
	s.unusable = count
}

// Watch lets the page look at a loop that runs, until Unwatch.
func (s *Served) Watch(l *loop.Loop) {
	c, path := l.Config(), l.Path.Pipeline
	figures := eachSecond(func() []dashboard.Plugin { return plugins(c.Machine) })
	s.page.Watch(func() dashboard.Live {
		return dashboard.Live{
			Snapshot: c.Bus.Snapshot(), Look: path.Look(), Stats: path.Stats(), Unusable: s.unusable(),
			Plugins: figures(), Ranks: max(1, c.Plan.World.Size),
		}
	})
}

// plugins are the figures of the plugins of a rank with the numbers of their processes.
func plugins(m *machine.Machine) (list []dashboard.Plugin) {
	up := m.Up()
	for i, p := range m.Report() {
		list = append(list, dashboard.Plugin{Plugin: p, Up: up[i]})
	}
	return list
}

// eachSecond returns a function with the result of get, which it calls at most once in a second: figures of plugins
// read files of their processes. It is not safe for concurrent use: the page looks once at a time.
func eachSecond[T any](get func() T) func() T {
	var last T
	var at time.Time
	return func() T {
		if at.IsZero() || time.Since(at) >= time.Second {
			last, at = get(), time.Now()
		}
		return last
	}
}

// Unwatch ends the looks of the page at the run, whose parts may be closed then. The servers go on.
func (s *Served) Unwatch() { s.page.Watch(nil) }
