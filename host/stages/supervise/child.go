package supervise

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
)

// child is an operating system process that is started once. go-plugin starts plugins through it. go-plugin's own
// runner would inherit the host's standard input, wait for every process that holds the output pipes, and kill only one
// process if a script has started several.
type child struct {
	cmd       *exec.Cmd
	sum       string // hex SHA-256 of the executable, or empty
	socketDir string // the only folder in which the plugin may listen
	journal   *journal
	onExit    func()
	onStart   func() // called after the start, before anything is read
	reaper    reaper
	launch    *sandbox.Launch // nil: the process is not confined
	program   string          // the path of the plugin's program

	handshake *handshake
	outR      *io.PipeReader
	done      chan struct{} // closed when the process has been reaped
	orphans   orphanReport  // set before done is closed

	mu     sync.Mutex // guards the rest
	pid    int        // 0: not started, or reaped
	reaped bool
	killed bool // by kill, before the process ended by itself
	failed bool // the launcher could not execute the program
}

// outputDelay is how long the host reads output after the exit, if another process holds the pipe open.
const outputDelay = 2 * time.Second

func newChild(cmd *exec.Cmd, sum string, j *journal, onExit func()) *child {
	c := &child{cmd: cmd, program: cmd.Path, sum: sum, journal: j, onExit: onExit, done: make(chan struct{})}
	r, w := io.Pipe()
	c.outR = r
	c.handshake = &handshake{to: w, rest: j.writer()}
	cmd.Stdin = nil // /dev/null
	cmd.Stdout = c.handshake
	cmd.Stderr = j.writer()
	cmd.WaitDelay = outputDelay
	// A separate process group: Ctrl-C in the terminal is for the host, which drains its plugins first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return c
}

// Start verifies the executable's checksum and starts it.
func (c *child) Start(context.Context) error {
	if c.sum != "" {
		if err := checkSum(c.program, c.sum); err != nil {
			defer c.launch.Close()
			return c.launch.Started(err)
		}
	}
	if err := c.fork(); err != nil {
		return err
	}
	c.onStart()
	return nil
}

func (c *child) fork() error {
	err := c.begin()
	began := err == nil
	if err = c.launch.Started(err); err == nil { // without the lock: kill ends the launcher, too
		go c.wait(c.cmd.Process.Pid)
		return nil
	}
	if began { // the launcher has given up, or is about to
		c.mu.Lock()
		unix.Kill(-c.pid, unix.SIGKILL)
		c.pid, c.reaped, c.failed = 0, true, true
		c.mu.Unlock()
		c.cmd.Wait()
		c.forget()
	}
	c.launch.Close()
	return err
}

// begin starts the command, which is the launcher if the process is confined.
func (c *child) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return errors.New("ended before it was started")
	}
	if err := c.start(); err != nil {
		return err
	}
	c.pid = c.cmd.Process.Pid
	return nil
}

// wait waits for the exit. Waiting for done is waiting for this goroutine.
func (c *child) wait(pid int) {
	// Wait for the exit without reaping. While the process is a zombie, its id, which is also its group's id, cannot be
	// reused, so it is safe to kill the rest of the group.
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	c.mu.Lock()
	unix.Kill(-pid, unix.SIGKILL)
	c.pid, c.reaped = 0, true
	c.mu.Unlock()
	c.orphans = c.reaper.endOrphans(c) // they may hold the output open, and write to the ring
	c.cmd.Wait()                       // ProcessState has the exit status
	c.forget()
	c.launch.Close()
	c.handshake.close()
	if w, ok := c.cmd.Stderr.(*lineWriter); ok {
		w.flush()
	}
	c.journal.close()
	c.journal.escaped(c.orphans.escaped)
	c.onExit()
	close(c.done)
}

// kill ends the process and its group at once, or prevents its start. It does not wait.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	c.killed = true
	if c.pid > 0 {
		unix.Kill(-c.pid, unix.SIGKILL)
	}
}

// exit describes how the process ended; it is empty before done. byItself is false if kill ended it.
func (c *child) exit() (how string, byItself bool) {
	select {
	case <-c.done:
	default:
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cmd.ProcessState.String(), !c.killed
}

// wasKilled reports whether SIGKILL ended the process, from kill or from outside. The process must have ended.
func (c *child) wasKilled() bool {
	s, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// The following methods implement go-plugin's runner.Runner.

func (c *child) Kill(context.Context) error { c.kill(); return nil }

func (c *child) Wait(context.Context) error { <-c.done; return nil }

func (c *child) Stdout() io.ReadCloser { return c.outR }

// Stderr is empty: the journal reads it.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

func (c *child) Name() string { return c.program }

func (c *child) Diagnose(context.Context) string { return "" }

func (c *child) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd.Process == nil || c.failed {
		return ""
	}
	return strconv.Itoa(c.cmd.Process.Pid)
}

// PluginToHost accepts only a socket in the private folder, because the host connects to it and removes it.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || filepath.Dir(address) != c.socketDir {
		return "", "",
			fmt.Errorf("it listens on %s %s, not on a unix socket in PLUGIN_UNIX_SOCKET_DIR", network, address)
	}
	return network, address, nil
}

func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// checkSum refuses a file that differs from the one the catalog checked.
func checkSum(path, want string) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s was changed since it was checked: sha256 %s, plugin.sum says %s", path, got, want)
	}
	return nil
}

// handshake passes the first line of standard output to go-plugin, and everything after it to the journal.
type handshake struct {
	to   *io.PipeWriter
	rest *lineWriter

	mu   sync.Mutex // guards the rest
	line []byte
	done bool
}

// maxHandshake is far more than any handshake needs: five short fields and a path.
const maxHandshake = 4 << 10

func (h *handshake) Write(b []byte) (int, error) {
	n := len(b)
	h.mu.Lock()
	if !h.done {
		i := bytes.IndexByte(b, '\n')
		end := i
		if i < 0 {
			end = len(b)
		}
		h.line = append(h.line, b[:end]...)
		if i < 0 && len(h.line) < maxHandshake {
			h.mu.Unlock()
			return n, nil
		}
		h.line = h.line[:min(len(h.line), maxHandshake)]
		h.done = true
		b = b[end:]
		h.to.Write(append(h.line, '\n')) // fails only if no one reads any more
		h.to.Close()
	}
	h.mu.Unlock()
	h.rest.Write(b)
	return n, nil
}

func (h *handshake) close() {
	h.to.Close()
	h.rest.flush()
}

// text returns what was written instead of the handshake, for messages.
func (h *handshake) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(h.line), "\uFFFD"))
}
