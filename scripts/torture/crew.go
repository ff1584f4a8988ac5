package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// silence is the --rank-timeout of a run whose connections are disturbed.
const silence = 3 * time.Second

// crew are the processes of a run of several ranks, from their start to their end.
type crew struct {
	*site
	ranks   int
	port    string
	flags   []string
	proxies []*proxy // by rank, that of rank 0 nil; none without faults of the network

	members []*member
	began   time.Time
}

// member is one of the ranks.
type member struct {
	cmd      *exec.Cmd
	director *director
	ended    chan struct{}

	// The fields below may be read after ended is closed.
	end    time.Time
	output []string
	told   time.Time // when it said that the run ends
}

func (m *member) status() syscall.WaitStatus { return m.cmd.ProcessState.Sys().(syscall.WaitStatus) }

// crew returns ranks that have not been started.
func (s *site) crew(ranks int, proxied bool, flags ...string) (*crew, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := &crew{site: s, ranks: ranks, port: port, flags: flags}
	if err := l.Close(); err != nil || !proxied {
		return c, err
	}
	c.proxies = []*proxy{nil}
	for range ranks - 1 {
		p, err := newProxy("127.0.0.1:" + port)
		if err != nil {
			c.closeProxies()
			return nil, err
		}
		c.proxies = append(c.proxies, p)
	}
	return c, nil
}

func (c *crew) closeProxies() {
	for _, p := range c.proxies {
		if p != nil {
			p.close()
		}
	}
}

// command returns a rank. A crew of one is started without the variables of a launcher.
func (c *crew) command(rank int) *exec.Cmd {
	args := []string{
		"--plugins", c.lab.plugins, "--debug-dir", c.debug(rank), "--resume-or-start", c.path("run"), "--graph",
		c.lab.dry, "--augment", "waveaug,specaugment", "--batch-size", fmt.Sprint(roundRows / c.ranks),
		"--buffer-size", fmt.Sprint(24 / c.ranks), "--threads", "1", "--log-every", "0", "--keep-last", "2",
		"--max-steps", fmt.Sprint(roundSteps), "--eval-every", "5", "--checkpoint-every", "7", "--spoken-clips", "0",
		"--plugin-timeout", "30", "--plugin-start-timeout", "30",
	}
	cmd := c.process(append(args, c.flags...))
	if c.ranks == 1 {
		return cmd
	}
	port := c.port
	if rank > 0 && c.proxies != nil {
		_, port, _ = net.SplitHostPort(c.proxies[rank].listener.Addr().String())
	}
	cmd.Env = append(cmd.Env, "XTTS_RANKS_SECRET=the secret of a round", "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port,
		fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", c.ranks), fmt.Sprintf("LOCAL_RANK=%d", rank),
		fmt.Sprintf("LOCAL_WORLD_SIZE=%d", c.ranks))
	return cmd
}

func (c *crew) debug(rank int) string { return filepath.Join(c.path("debug"), fmt.Sprint(rank)) }

// start starts all ranks. The rank watch gets the fault.
func (c *crew) start(watch int, s *injection, act func()) error {
	c.began = time.Now()
	for rank := range c.ranks {
		if err := os.MkdirAll(c.debug(rank), 0o777); err != nil {
			return err
		}
		m := &member{cmd: c.command(rank), ended: make(chan struct{})}
		var own *injection
		if rank == watch {
			own = s
		}
		var err error
		if m.director, err = direct(filepath.Join(c.debug(rank), "phases.sock"), own, act); err != nil {
			return err
		}
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		m.cmd.Stdout, m.cmd.Stderr = write, write
		err = m.cmd.Start()
		write.Close()
		if err != nil {
			return errors.Join(err, read.Close())
		}
		c.members = append(c.members, m)
		go m.follow(read)
	}
	return nil
}

// follow reads what a rank says until it has ended.
func (m *member) follow(read *os.File) {
	defer close(m.ended)
	defer read.Close()
	var copied sync.WaitGroup
	copied.Go(func() {
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			if m.output = append(m.output, lines.Text()); strings.HasPrefix(lines.Text(), "the run ends: ") {
				m.told = time.Now()
			}
		}
	})
	m.cmd.Wait() // ProcessState has the exit status
	m.end = time.Now()
	read.SetReadDeadline(m.end.Add(time.Second)) // a plugin that is left over may have the other end
	copied.Wait()
}

// wait waits until all ranks have ended. One that does not is made to print where it hangs. limit counts from now.
func (c *crew) wait(ctx context.Context, limit time.Duration) (err error) {
	over := time.NewTimer(limit)
	defer over.Stop()
	for rank, m := range c.members {
		select {
		case <-m.ended:
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-over.C:
			err = fmt.Errorf("rank %d has not ended within %v", rank, limit)
		}
		break
	}
	for _, m := range c.members {
		if err != nil {
			m.cmd.Process.Signal(syscall.SIGCONT)
			m.cmd.Process.Signal(syscall.SIGQUIT)
		}
	}
	for _, m := range c.members {
		kill := time.AfterFunc(3*time.Second, func() { m.cmd.Process.Kill() })
		<-m.ended
		kill.Stop()
	}
	return err
}

// close ends what the harness has for the ranks, and keeps their output.
func (c *crew) close() error {
	var errs []error
	for rank, m := range c.members {
		errs = append(errs, m.director.close(), appendFile(c.path("output.txt"), fmt.Sprintf(
			"$ %s # rank %d of %d\n%s\n%v after %v\n\n", strings.Join(m.cmd.Args, " "), rank, c.ranks,
			strings.Join(m.output, "\n"), m.cmd.ProcessState, m.end.Sub(c.began).Round(time.Millisecond))))
	}
	c.closeProxies()
	return errors.Join(errs...)
}

// nothingLeft checks that no process runs and that no one listens where rank 0 did.
func (c *crew) nothingLeft() error {
	if err := c.noProcess(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+c.port)
	if err != nil {
		return fmt.Errorf("the port of rank 0: %w", err)
	}
	return l.Close()
}

// signal sends a signal to some ranks.
func (c *crew) signal(s syscall.Signal, ranks ...int) {
	for _, rank := range ranks {
		c.members[rank].cmd.Process.Signal(s) // one that has ended gets nothing
	}
}

// all are the numbers of all ranks.
func (c *crew) all() (ranks []int) {
	for rank := range c.ranks {
		ranks = append(ranks, rank)
	}
	return ranks
}
