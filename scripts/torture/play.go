package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// deadline is the time that a plugin has for an answer: short, because everything waits for a stopped plugin, and long
// enough for a busy machine.
const deadline = 5 * time.Second

// hostLimit is the maximum time of a host, including missed deadlines of its plugins.
const hostLimit = 90 * time.Second

// site is the folder of one run with its processes.
type site struct {
	lab    *lab
	dir    string
	kind   kind
	marker string // in the environment of every process of the run
}

func (l *lab) site(dir, name string, k kind) (*site, error) {
	s := &site{lab: l, dir: dir, kind: k, marker: fmt.Sprintf("XTTS_PLUGIN_TORTURE_ID=%d-%s", os.Getpid(), name)}
	return s, errors.Join(os.MkdirAll(s.path("tmp"), 0o777), os.MkdirAll(s.path("debug"), 0o777),
		os.MkdirAll(s.path("home"), 0o777))
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// command returns a host that starts the run or resumes it: the command line is the same every time.
func (s *site) command(more ...string) *exec.Cmd {
	graph := s.lab.graph
	if s.kind.players {
		graph = s.lab.players
	}
	args := []string{
		"--plugins", s.lab.plugins, "--debug-dir", s.path("debug"), "--resume-or-start", s.path("run"), "--graph",
		graph, "--augment", "waveaug,specaugment", "--batch-size", "2", "--buffer-size", "6", "--threads", "1",
		"--log-every", "0", "--keep-last", "2", "--max-steps", fmt.Sprint(steps), "--checkpoint-every",
		fmt.Sprint(checkpointEvery), "--plugin-timeout", fmt.Sprint(deadline.Seconds()), "--plugin-start-timeout",
		fmt.Sprint(deadline.Seconds()),
	}
	args = append(args, s.kind.args...)
	return s.process(append(args, more...))
}

// process returns a host of the run.
func (s *site) process(args []string) *exec.Cmd {
	cmd := exec.Command(s.lab.host, args...)
	cmd.Env = append([]string{
		s.marker, "PATH=" + os.Getenv("PATH"), "HOME=" + s.path("home"), "TMPDIR=" + s.path("tmp"),
		"XDG_CACHE_HOME=" + s.lab.cache, "XTTS_HOST_DEVICE=cpu", "ORT_DISABLE_TELEMETRY=1",
	}, s.lab.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the harness, which ends its processes
	return cmd
}

// outcome is how a host ended.
type outcome struct {
	director *director
	status   syscall.WaitStatus
	output   string
}

// injected reports whether the fault was injected.
func (o *outcome) injected() bool { return !o.director.injected.IsZero() }

// host runs one host to its end and injects a fault.
func (s *site) host(ctx context.Context, injection *injection) (*outcome, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	d, err := direct(filepath.Join(s.path("debug"), "phases.sock"), injection, func() { read.Close() })
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	defer d.close()
	cmd := s.command()
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Start()
	write.Close()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	copied := make(chan struct{})
	go func() { io.Copy(&out, read); close(copied) }() // until the host has ended, or its reader goes away
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }() // ProcessState has the exit status
	limit := time.NewTimer(hostLimit)
	defer limit.Stop()
	select {
	case <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-limit.C:
		err = fmt.Errorf("the host has not ended within %v", hostLimit)
		cmd.Process.Signal(syscall.SIGQUIT) // prints where it hangs
		time.Sleep(time.Second)
	}
	if err != nil {
		cmd.Process.Kill()
		<-ended
	}
	err = errors.Join(err, d.close())
	read.SetReadDeadline(time.Now().Add(time.Second)) // a plugin that is left over may have the other end
	<-copied
	if werr := appendFile(
		s.path("output.txt"), fmt.Sprintf("$ %s\n%s\n%v\n\n", strings.Join(cmd.Args, " "), &out, cmd.ProcessState),
	); err == nil {
		err = werr
	}
	return &outcome{d, cmd.ProcessState.Sys().(syscall.WaitStatus), out.String()}, err
}

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// reference is an undisturbed run.
type reference struct {
	result
	points map[string]int // how often it reached each phase
}

func (l *lab) reference(ctx context.Context, k kind) (*reference, error) {
	s, err := l.site(filepath.Join(l.dir, "undisturbed-"+k.name), "undisturbed-"+k.name, k)
	if err != nil {
		return nil, err
	}
	defer s.killAll()
	out, err := s.host(ctx, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(out.ended(), s.clean()); err != nil {
		return nil, err
	}
	r, err := s.result()
	if err != nil {
		return nil, err
	}
	for _, phase := range phases {
		if out.director.points[phase] == 0 {
			return nil, fmt.Errorf("the host never reaches %s", phase)
		}
	}
	return &reference{*r, out.director.points}, nil
}

// ended returns what is wrong about the end of a host that was not killed.
func (o *outcome) ended() error {
	if o.status.Exited() && o.status.ExitStatus() == 0 {
		return nil
	}
	return fmt.Errorf("the host ended with status %d, signal %d: %s", o.status.ExitStatus(), o.status.Signal(),
		lastLines(o.output, 8))
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n       ")
}

// play runs a case to its end and compares. It returns the number of injected faults. The folder of a successful case
// is removed.
func (l *lab) play(ctx context.Context, c *tortureCase, ref *reference) (injected int, err error) {
	s, err := l.site(l.caseDir(c), fmt.Sprintf("%d-%d", c.seed, c.number), kinds[c.kind])
	if err != nil {
		return 0, err
	}
	defer s.killAll()
	stopped := false
	for i := 0; ; i++ {
		var next *injection
		if i < len(c.injections) {
			next = &c.injections[i]
		}
		out, err := s.host(ctx, next)
		if err != nil {
			return injected, err
		}
		if out.injected() {
			injected++
		} else if i == 0 {
			return injected, errors.New("the run never reached the phase of the fault")
		}
		killed := out.injected() && next.fatal() && out.status.Signaled() &&
			out.status.Signal() == syscall.SIGKILL
		if err := s.noProcess(); err != nil {
			return injected, err
		}
		interrupted := out.injected() && next.stops() && out.status.Exited() && out.status.ExitStatus() == 130
		stopped = stopped || interrupted
		if !killed && !interrupted {
			if err := out.ended(); err != nil {
				return injected, err
			}
			break
		}
	}
	if err := s.clean(); err != nil {
		return injected, err
	}
	got, err := s.result()
	if err != nil {
		return injected, err
	}
	if stopped { // an interruption saves a checkpoint of its own, and older ones go earlier
		got, ref = got.lastCheckpoint(steps), &reference{result: *ref.lastCheckpoint(steps)}
	}
	if err := got.compare(&ref.result); err != nil {
		return injected, err
	}
	return injected, os.RemoveAll(s.dir)
}
