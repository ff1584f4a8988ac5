package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// launcherName is the name under which this program starts itself as the launcher. A list of processes shows it until
// the launcher has become the program.
const launcherName = "xtts-host plugin-exec"

// executing is the last step of the launcher.
const executing = "execute the program"

// init makes this process the launcher if it was started as one. It runs on the main thread, as all init functions do,
// and before main, whatever program it is in.
func init() {
	if len(os.Args) > 2 && os.Args[0] == launcherName {
		launch(os.Args[1], os.Args[2:])
	}
}

// launch restricts this thread and becomes the program. It returns never.
func launch(text string, argv []string) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, "error: a command for the host's own use:", err)
		os.Exit(2)
	}
	unix.CloseOnExec(o.Status)
	what, err := "close inherited files", closeOnExec(o.Last+1)
	if err == nil {
		what, err = o.restrict()
	}
	if err == nil {
		what, err = executing, syscall.Exec(o.Program, argv, os.Environ())
	}
	f := failure{What: what, Err: syscall.EINVAL}
	if !errors.As(err, &f.Err) {
		f.What = fmt.Sprintf("%s: %v", what, err)
	}
	text2, _ := json.Marshal(f) // two plain values
	unix.Write(o.Status, text2)
	os.Exit(1)
}

// closeOnExec keeps the descriptors from one on from the program: those that the host has inherited itself, such as
// that of a lock of the shell, and those that libraries in C have opened without O_CLOEXEC.
func closeOnExec(from int) error {
	if unix.CloseRange(uint(from), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return closeListedOnExec(from)
}

// closeListedOnExec is closeOnExec for kernels before Linux 5.11, and for containers that refuse its system call.
func closeListedOnExec(from int) error {
	files, err := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd >= from {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// Limits of a plugin process.
const (
	largestFile = 16 << 30 // bytes; the ring counts, for a program that writes to it by pwrite(2)
	mostFiles   = 1 << 16  // descriptors
)

// restrict restricts this thread, or says at which step it failed. The order is that of the rights that each step
// needs: joining a cgroup opens a file, and lowering the capabilities needs one of them.
func (o *order) restrict() (what string, err error) {
	if o.Group != "" {
		if err := join(o.Group); err != nil {
			return "join " + o.Group, err
		}
	}
	if err := o.limit(); err != nil {
		return "limit resources", err
	}
	if err := dropCapabilities(); err != nil {
		return "drop capabilities", err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "no_new_privs", err
	}
	if o.Rules != 0 {
		if err := o.allowTasks(); err != nil {
			return "Landlock, for threads", err
		}
		if err := enforce(o.Rules, o.RuleFlags); err != nil {
			return "Landlock", err
		}
		unix.Close(o.Rules)
	}
	if o.Calls != nil {
		program, err := o.Calls.filter()
		if err == nil {
			err = install(program)
		}
		if err != nil {
			return "seccomp", err
		}
	}
	return "", nil
}

// allowTasks adds the folder of this process's threads to the ruleset, if it may write there. A rule is for the inode
// of a file, which the kernel may drop and make again for a folder in /proc: the program keeps a descriptor of it.
func (o *order) allowTasks() error {
	if o.WriteTasks == 0 {
		return nil
	}
	fd, err := unix.Open("/proc/self/task", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	rule := ll.PathBeneathAttr{AllowedAccess: o.WriteTasks, ParentFd: fd}
	return ll.LandlockAddPathBeneathRule(o.Rules, &rule, 0)
}

// join moves this process to the cgroup of a list.
func join(list string) error {
	f, err := os.OpenFile(list, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("0")
	return errors.Join(err, f.Close())
}

func (o *order) limit() error {
	if o.LimitTasks > 0 {
		if err := limitTasks(o.LimitTasks); err != nil {
			return err
		}
	}
	if err := lower(unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	// By package syscall: otherwise its Exec sets the limit again that this process was started with.
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	files.Max = min(files.Max, mostFiles)
	files.Cur = min(files.Cur, files.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	return lower(unix.RLIMIT_FSIZE, o.LargestFile)
}

// kept are the capabilities that root keeps: to read files of other users where Landlock allows it, as in a container
// with mounted folders, and to lock memory, as CUDA does.
const kept = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_IPC_LOCK

// dropCapabilities drops the others, for this thread and for what it executes.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	if sets[0].Permitted == 0 && sets[1].Permitted == 0 { // a plain user, who gets none by no_new_privs
		return nil
	}
	for c := range uintptr(64) {
		if kept>>c&1 == 0 {
			// EINVAL: there are no more. EPERM: it may not, and then no_new_privs keeps it from getting more.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				break
			}
		}
	}
	for i := range sets {
		keep := uint32(uint64(kept) >> (32 * i))
		sets[i].Permitted &= keep
		sets[i].Effective, sets[i].Inheritable = sets[i].Permitted, 0
	}
	return unix.Capset(&header, &sets[0])
}
