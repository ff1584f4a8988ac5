package launch

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/settings/world"
)

// Children are the ranks of a run on one machine but the first, which is the process that has started them.
type Children struct {
	all   []*exec.Cmd
	tails []*tail
	done  chan struct{} // closed when all have ended
}

// Start starts so many ranks on this machine less one, which this process is: with a program, the arguments of this
// one, and the variables that torchrun sets. They are in process groups of their own, so that Ctrl-C in a terminal
// reaches rank 0 alone, which tells the others, and are asked to stop when this process ends. ended is called, on any
// goroutine, with the error of each that ends with another status than 0, also if this rank knows why. Call Wait when
// the run is over.
func Start(ranks int, program string, args []string, ended func(error)) (Found, *Children, error) {
	port, err := freePort()
	if err != nil {
		return Found{}, nil, err
	}
	f := Found{
		World: world.World{Size: ranks, LocalSize: ranks}, By: "--model-gpu", Secret: rand.Text(),
		Address: net.JoinHostPort("127.0.0.1", port),
	}
	c := &Children{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel takes the end of this thread for that of the process
		started <- c.start(f, port, program, args, ended)
		<-c.done
	}()
	if err := <-started; err != nil {
		c.kill()
		return f, nil, err
	}
	return f, c, nil
}

// start starts the processes.
func (c *Children) start(f Found, port, program string, args []string, ended func(error)) error {
	var running sync.WaitGroup
	defer func() { go func() { running.Wait(); close(c.done) }() }()
	for rank := 1; rank < f.Size; rank++ {
		cmd, last := exec.Command(program, args...), new(tail)
		cmd.Stderr = last
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
		cmd.WaitDelay = time.Second // for the plugins that hold its standard error
		cmd.Env = append(os.Environ(),
			fmt.Sprint("RANK=", rank), fmt.Sprint("WORLD_SIZE=", f.Size), fmt.Sprint("LOCAL_RANK=", rank),
			fmt.Sprint("LOCAL_WORLD_SIZE=", f.Size), "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port,
			"TORCHELASTIC_USE_AGENT_STORE=", SecretVariable+"="+f.Secret)
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start rank %d: %w", rank, err)
		}
		c.all, c.tails = append(c.all, cmd), append(c.tails, last)
		running.Go(func() {
			if err := cmd.Wait(); err != nil {
				ended(failure(rank, err, last.String()))
			}
		})
	}
	return nil
}

// failure is the error of a rank that has ended by itself. What it has printed last says why.
func failure(rank int, err error, said string) error {
	text := fmt.Sprintf("rank %d ended: %v", rank, err)
	if said = strings.TrimSpace(said); said != "" {
		text += "; it said: " + said
	}
	return exit.New(exit.StatusRank, text)
}

// lastWords is how long the other ranks may take to end after rank 0.
var lastWords = 10 * time.Second

// Wait waits until all have ended. Those that take long are killed. It returns what one that a signal has ended has
// printed last: one that ends by itself has told the others why.
func (c *Children) Wait() error {
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
	case <-time.After(lastWords):
		c.kill()
		<-c.done
	}
	var errs []error
	for i, cmd := range c.all {
		if !cmd.ProcessState.Exited() {
			errs = append(errs, failure(i+1, errors.New(cmd.ProcessState.String()), c.tails[i].String()))
		}
	}
	return errors.Join(errs...)
}

// kill kills those that have not ended. Their plugins end with them.
func (c *Children) kill() {
	for _, cmd := range c.all {
		_ = cmd.Process.Kill() // of one that has ended, an error
	}
}

// freePort returns a port of this machine that no one listens at.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// tail keeps the last lines that are written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4096

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text = append(t.text, p...); len(t.text) > tailBytes {
		t.text = t.text[len(t.text)-tailBytes:]
		if _, rest, ok := bytes.Cut(t.text, []byte("\n")); ok {
			t.text = rest
		}
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
