// Package limits reads what the operating system and the container let this process use.
package limits

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Limits are upper bounds, in bytes if nothing else is said, 0 where there is none or it is unknown.
type Limits struct {
	// Memory is the machine's.
	Memory int64
	// Container is the limit of the cgroup, for all of its processes together. It is 0 when it is above Memory.
	Container int64
	// AddressSpace is RLIMIT_AS (ulimit -v), for each process.
	AddressSpace int64
	// Threads is RLIMIT_NPROC (ulimit -u), for all processes of the user together, which have Running; Running is 0 if
	// it is unknown or the user is root.
	Threads, Running int64
	// Stack is RLIMIT_STACK (ulimit -s): the C library gives it to each thread.
	Stack int64
	// Seconds is RLIMIT_CPU (ulimit -t), the CPU time after which the kernel ends a process.
	Seconds int64
	// Files is the number of open files of each process (ulimit -n).
	Files int64
}

// Read reads the limits of this process.
func Read() Limits {
	var l Limits
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		l.Memory = int64(info.Totalram) * int64(info.Unit)
	}
	if n, err := memlimit.FromCgroup(); err == nil && n > 0 && (l.Memory == 0 || n < uint64(l.Memory)) {
		l.Container = int64(n)
	}
	l.AddressSpace, l.Files = rlimit(unix.RLIMIT_AS), rlimit(unix.RLIMIT_NOFILE)
	if l.Threads = rlimit(unix.RLIMIT_NPROC); l.Threads > 0 {
		l.Running = threads("/proc")
	}
	l.Stack, l.Seconds = rlimit(unix.RLIMIT_STACK), rlimit(unix.RLIMIT_CPU)
	return l
}

func rlimit(resource int) int64 {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil || r.Cur == unix.RLIM_INFINITY || int64(r.Cur) < 0 {
		return 0
	}
	return int64(r.Cur)
}

// Total is the memory that all processes of a run together can have, and the name of what limits it.
func (l Limits) Total() (bytes int64, what string) {
	if l.Container > 0 {
		return l.Container, "the container's memory limit"
	}
	return l.Memory, "the machine's memory"
}

// leastAddressSpace is less than what the smallest run reserves: 2.5 GiB were seen with the smallest embedded model. Go
// and ONNX Runtime reserve far more than they use.
const leastAddressSpace = 3 << 30

// leastThreads is what a run on two processors starts, with its plugins, after its settings are read.
const leastThreads = 24

// leastStack is twice of what the threads of ONNX Runtime were seen to need. With less, they end the process.
const leastStack = 1 << 20

// Check refuses limits under which no run can work.
func (l Limits) Check() error {
	if l.AddressSpace > 0 && l.AddressSpace < leastAddressSpace {
		return hint.Errorf("ulimit -v unlimited, and limit memory by a cgroup instead (systemd-run -p MemoryMax=4G, "+
			"docker run --memory 4g)",
			"the address space is limited to %d MiB (ulimit -v), and training reserves at least %d MiB",
			l.AddressSpace>>20, leastAddressSpace>>20)
	}
	if free := l.Threads - l.Running; l.Running > 0 && free < leastThreads {
		return hint.Errorf("ulimit -u unlimited, or end other processes of the user",
			"the user may have %d processes and threads (ulimit -u) and has %d, and a run starts at least %d",
			l.Threads, l.Running, leastThreads)
	}
	if l.Stack > 0 && l.Stack < leastStack {
		return hint.Errorf("ulimit -s 8192",
			"the stack of a thread is limited to %d KiB (ulimit -s), and ONNX Runtime needs at least %d KiB",
			l.Stack>>10, leastStack>>10)
	}
	return nil
}
