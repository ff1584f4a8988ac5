package supervise

import (
	"os/exec"
	"runtime"
	"sync"
)

// starter starts commands on a thread that lives as long as the host. The kernel kills a plugin when the thread that started
// it ends (PR_SET_PDEATHSIG), and Go ends threads at will.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() { // for the life of the program, like the thread
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

func startCommand(cmd *exec.Cmd) error {
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}
