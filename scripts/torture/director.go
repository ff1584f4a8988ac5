package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// point is what the host tells when it comes to one: host/debug's Point.
type point struct {
	Phase      string `json:"phase"`
	Host       int    `json:"host"`
	Plugin     string `json:"plugin"`
	PID        int    `json:"pid"`
	Worker     int    `json:"worker"`
	Generation int    `json:"generation"`
}

// director listens to one host process and strikes once. Every point waits for its answer, one at a time, so while a
// strike is under way the run does not get beyond the next point.
type director struct {
	listener net.Listener
	strike   *strike // nil: only count
	done     chan struct{}

	// What follows is for done.
	points map[string]int
	struck bool
	err    error

	procs []point // running plugin processes
}

// direct begins to listen.
func direct(socket string, s *strike) (*director, error) {
	os.Remove(socket) // of the host before
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	d := &director{listener: listener, strike: s, done: make(chan struct{}), points: map[string]int{}}
	go func() {
		defer close(d.done)
		d.err = d.serve()
	}()
	return d, nil
}

// close ends it, whether the host has called or not.
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
			return fmt.Errorf("the host tells %q: %w", lines.Text(), err)
		}
		d.points[p.Phase]++
		d.follow(p)
		now := d.strike != nil && !d.struck && p.Phase == d.strike.phase && d.points[p.Phase] == d.strike.occurrence
		if now && d.strike.held {
			d.hit(p)
		}
		if _, err := conn.Write([]byte("\n")); err != nil {
			return nil // the host is gone
		}
		if now && !d.strike.held {
			d.hit(p)
		}
	}
	return nil // a host that is killed resets the connection
}

// follow keeps the list of plugin processes.
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

// pick is the plugin process that the strike picks among those that run: at the end of a run some have ended in order.
func (d *director) pick() int {
	d.procs = slices.DeleteFunc(d.procs, func(p point) bool { return syscall.Kill(p.PID, 0) != nil })
	if len(d.procs) == 0 {
		return 0 // none left to strike
	}
	return d.procs[int(d.strike.pick)%len(d.procs)].PID
}

// hit strikes.
func (d *director) hit(p point) {
	s := d.strike
	time.Sleep(s.delay)
	pid := p.Host
	if s.target == "plugin" || s.freeze {
		plugin := p.PID
		if !s.own || plugin == 0 {
			plugin = d.pick()
		}
		if plugin == 0 {
			return // to 0 a signal goes to the harness and all that it runs
		}
		if s.target == "plugin" {
			pid = plugin
		} else {
			syscall.Kill(plugin, syscall.SIGSTOP)
		}
	}
	var signals []syscall.Signal
	switch s.signal {
	case "KILL":
		signals = []syscall.Signal{syscall.SIGKILL}
	case "STOP":
		signals = []syscall.Signal{syscall.SIGSTOP}
	case "STOP, CONT":
		signals = []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT}
	case "STOP, KILL":
		signals = []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL}
	}
	for i, sig := range signals {
		if i > 0 {
			time.Sleep(s.stop)
		}
		if err := syscall.Kill(pid, sig); err == nil {
			d.struck = true
		}
	}
}
