package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// order is what the launcher is told.
type order struct {
	Program string
	// Status is the descriptor to which the launcher writes why it failed. Rules is that of the Landlock ruleset, or 0,
	// and RuleFlags are the flags to restrict itself with.
	Status, Rules int
	RuleFlags     uint32
	WriteTasks    uint64 // rights of Landlock to the folder of the program's threads, or 0
	Last          int    // descriptor that the launcher is given
	Calls         *calls // that are allowed; nil: all
	Group         string // the file by which it joins its cgroup, or empty
	LimitTasks    int    // how many more processes than the machine has now; 0: no limit
	LargestFile   uint64
}

// Launch is the start of a confined process. A nil Launch is that of one that is not confined.
type Launch struct {
	program string
	status  *os.File   // of the launcher
	given   []*os.File // to the child
	group   *group
}

// Wrap changes a command that has not been started, so that it starts the launcher, which becomes the command's program
// with the restrictions of the policy. The program gets the descriptors of cmd.ExtraFiles, and no others; with a GPU,
// also one of the folder of its own threads. Under Off, Wrap does nothing and returns nil. Errors have a hint.
func Wrap(cmd *exec.Cmd, p Policy, m Mode) (*Launch, error) { return wrap(cmd, p, m, detect()) }

func wrap(cmd *exec.Cmd, p Policy, m Mode, k kernel) (_ *Launch, err error) {
	if m == Off || cmd.Err != nil { // Start returns cmd.Err
		return nil, nil
	}
	if err := m.check(k); err != nil {
		return nil, err
	}
	l := &Launch{program: cmd.Path}
	defer func() {
		if err != nil {
			l.closeFiles()
			l.Close()
			err = hint.Errorf("--sandbox off starts plugins without it", "confine the process: %w", err)
		}
	}()
	o := order{Program: cmd.Path, LargestFile: uint64(max(p.LargestFile, largestFile))}
	give := func(f *os.File) int {
		l.given = append(l.given, f)
		return 2 + len(cmd.ExtraFiles) + len(l.given)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.status, o.Status = read, give(write)
	if k.abi > 0 {
		fd, flags, err := p.ruleset(k.abi)
		if err != nil {
			return nil, err
		}
		o.Rules, o.RuleFlags = give(os.NewFile(uintptr(fd), "landlock")), flags
	}
	if k.noCalls == "" {
		allowed := p.calls(k.abi)
		o.Calls, o.WriteTasks = &allowed, p.writeTasks(k.abi)
	}
	switch {
	case k.tasks.folder != "":
		if l.group, err = newGroup(k.tasks.folder, p.tasks()); err != nil {
			return nil, err
		}
		o.Group = l.group.list()
	case k.noTasks == "":
		o.LimitTasks = p.tasks()
	}
	o.Last = 2 + len(cmd.ExtraFiles) + len(l.given)
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd.Path, cmd.Args = "/proc/self/exe", append([]string{launcherName, string(text)}, cmd.Args...)
	cmd.ExtraFiles = append(cmd.ExtraFiles, l.given...)
	return l, nil
}

// Started takes the result of the start of the command. It returns when the program runs, or why it does not: an error
// like that of Start. Then the process has ended, and the caller must wait for it.
func (l *Launch) Started(start error) error {
	if l == nil {
		return start
	}
	defer l.closeFiles()
	if start != nil {
		return start
	}
	for _, f := range l.given {
		f.Close()
	}
	l.given = nil
	text, err := io.ReadAll(l.status) // ends when the launcher executes the program, which closes its side
	if err != nil || len(text) == 0 {
		return err
	}
	var f failure
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("the launcher says %q", text)
	}
	if f.What == executing {
		return &os.PathError{Op: "fork/exec", Path: l.program, Err: f.Err}
	}
	return hint.Errorf("--sandbox off starts plugins without it", "confine the process: %s: %w", f.What, f.Err)
}

// Close removes what the process used of the machine. The process has been reaped.
func (l *Launch) Close() {
	if l != nil && l.group != nil {
		l.group.remove()
	}
}

func (l *Launch) closeFiles() {
	for _, f := range l.given {
		f.Close()
	}
	l.given = nil
	if l.status != nil {
		l.status.Close()
	}
}

// failure is why the launcher did not execute the program.
type failure struct {
	What string
	Err  syscall.Errno
}
