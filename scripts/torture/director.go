package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "PIPE": syscall.SIGPIPE}

// point is what the host reports when it reaches a phase: host/observe/debug's Point.
type point struct {
	Phase      string `json:"phase"`
	Host       int    `json:"host"`
	Plugin     string `json:"plugin"`
	PID        int    `json:"pid"`
	Worker     int    `json:"worker"`
	Generation int    `json:"generation"`
}

// director listens to one host process and injects one fault. The host reports one phase at a time and waits for the
// answer, so during an injection the run does not pass the next phase.
type director struct {
	listener  net.Listener
	injection *injection // nil: only count
	act       func()     // injects what is not a signal for one process
	done      chan struct{}

	// The fields below may be read after done is closed.
	points   map[string]int
	injected time.Time // zero: not yet
	err      error

	procs []point // running plugin processes
}

// direct starts to listen.
func direct(socket string, s *injection, act func()) (*director, error) {
	os.Remove(socket) // of the previous host
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	d := &director{
		listener: listener, injection: s, act: act, done: make(chan struct{}), points: map[string]int{},
	}
	go func() {
		defer close(d.done)
		d.err = d.serve()
	}()
	return d, nil
}

// close ends the director, even if the host has not connected.
func (d *director) close() error {
	d.listener.Close()
	<-d.done
	return d.err
}

func (d *director) serve() error {
	conn, err := d.listener.Accept()
	if err != nil {
		return nil // closed
	}
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var p point
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return fmt.Errorf("the host reports %q: %w", lines.Text(), err)
		}
		d.points[p.Phase]++
		d.follow(p)
		now := d.injection != nil && d.injected.IsZero() && p.Phase == d.injection.phase &&
			d.points[p.Phase] == d.injection.occurrence
		if now && d.injection.held {
			d.inject(p)
		}
		if _, err := conn.Write([]byte("\n")); err != nil {
			return nil // the host has ended
		}
		if now && !d.injection.held {
			d.inject(p)
		}
	}
	return nil // a host that is killed resets the connection
}

// follow updates the list of plugin processes.
func (d *director) follow(p point) {
	if p.PID == 0 {
		return
	}
	d.procs = slices.DeleteFunc(d.procs, func(o point) bool { return o.Plugin == p.Plugin && o.Worker == p.Worker })
	d.procs = append(d.procs, p)
	slices.SortFunc(d.procs, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Worker, b.Worker))
	})
}

// pick returns the selected plugin process among those that run: at the end of a run some have ended normally.
func (d *director) pick() int {
	d.procs = slices.DeleteFunc(d.procs, func(p point) bool { return syscall.Kill(p.PID, 0) != nil })
	if len(d.procs) == 0 {
		return 0 // no process left
	}
	return d.procs[int(d.injection.pick)%len(d.procs)].PID
}

// inject injects the fault.
func (d *director) inject(p point) {
	s := d.injection
	time.Sleep(s.delay)
	pid := p.Host
	if s.target == "plugin" || s.freeze {
		plugin := p.PID
		if !s.own || plugin == 0 {
			plugin = d.pick()
		}
		if plugin == 0 {
			return // kill with pid 0 would signal the harness and its processes
		}
		if s.target == "plugin" {
			pid = plugin
		} else {
			syscall.Kill(plugin, syscall.SIGSTOP)
		}
	}
	if s.signal == noReader || s.target == byRound {
		d.injected = time.Now()
		d.act()
		return
	}
	for i, name := range strings.Split(s.signal, ", ") {
		if i > 0 {
			time.Sleep(s.stop)
		}
		now := time.Now()
		if err := syscall.Kill(pid, signals[name]); err == nil && d.injected.IsZero() {
			d.injected = now
		}
	}
}
