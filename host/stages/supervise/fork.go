package supervise

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// starter starts commands on a thread that lives as long as the host. The kernel kills a plugin when the thread that
// started it ends (PR_SET_PDEATHSIG), and Go ends threads at will. The first start makes the host the subreaper of its
// plugins.
var starter = sync.OnceValue(func() chan<- func() {
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // known to every kernel since 3.4
	work := make(chan func())
	go func() { // for the life of the program, like the thread
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

// start starts the command of a child and makes it known to the family.
func (c *child) start() error {
	done := make(chan error)
	starter() <- func() {
		family.Lock()
		defer family.Unlock()
		err := c.cmd.Start()
		if err == nil {
			family.plugins[c.cmd.Process.Pid] = c
		}
		done <- err
	}
	return <-done
}

// forget removes a child that has been reaped from the family, unless another one has its process id by now.
func (c *child) forget() {
	family.Lock()
	defer family.Unlock()
	if pid := c.cmd.Process.Pid; family.plugins[pid] == c {
		delete(family.plugins, pid)
	}
}
