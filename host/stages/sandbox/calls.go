package sandbox

import (
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refused are the system calls that no plugin needs, and that reach beyond its process. Each fails with EPERM.
var refused = []uint32{
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PERF_EVENT_OPEN,
	// namespaces and mounts
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_BY_HANDLE_AT,
	// code in the kernel, and its keys
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	// system calls that no filter sees
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	// the machine
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL,
	unix.SYS_QUOTACTL_FD, unix.SYS_VHANGUP,
	// attributes of files, and owner and mode by a path, which Landlock does not restrict
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR,
	unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
}

// newNamespaces are the flags of clone(2) that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// refusedModes are the bits of a mode that fchmod(2) must not set: setuid, setgid, sticky, and writing for others than
// the owner. It takes files that are open for reading only, such as programs of the system.
const refusedModes = 0o7022

// lastCall is the highest number of a system call that this program knows. Newer ones do not exist for a plugin.
const lastCall = unix.SYS_RSEQ_SLICE_YIELD

// calls says which system calls a filter allows besides those that it always does.
type calls struct {
	Network  bool // sockets of the internet
	Connect  bool // connections to Unix sockets; a plugin only accepts one
	Truncate bool // emptying a file without opening it for writing, which Landlock restricts from ABI 3 on
}

// Answers of a filter.
var (
	allowCall  = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuseCall = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	noCall     = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
)

// A filter reads struct seccomp_data (seccomp(2)): the number of the call, the architecture, and from byte 16 the six
// arguments of 64 bits, whose lower half is first.
var (
	loadNumber = bpf.LoadAbsolute{Off: 0, Size: 4}
	loadArch   = bpf.LoadAbsolute{Off: 4, Size: 4}
)

func loadLow(arg uint32) bpf.Instruction  { return bpf.LoadAbsolute{Off: 16 + 8*arg, Size: 4} }
func loadHigh(arg uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: 20 + 8*arg, Size: 4} }

// filter returns the program that judges the system calls of a plugin.
//
// The known library in Go (go-seccomp-bpf) allows every call of another architecture, such as those of 32 bits by
// int 0x80, when it refuses only some calls. So the instructions are here; package bpf checks and encodes them.
func (c calls) filter() ([]bpf.RawInstruction, error) {
	program := []bpf.Instruction{
		loadArch, bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1}, refuseCall,
		loadNumber, bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastCall, SkipTrue: 1}, noCall,
	}
	// when adds instructions for one call, the last of which answer it.
	when := func(number uint32, do ...bpf.Instruction) {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(do))})
		program = append(program, do...)
	}
	for _, list := range [][]uint32{refused, refusedHere} {
		for _, number := range list {
			when(number, refuseCall)
		}
	}
	when(unix.SYS_CLONE3, noCall) // its flags are in memory, so that runtimes use clone
	when(unix.SYS_CLONE, loadLow(0), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newNamespaces, SkipFalse: 1}, refuseCall,
		allowCall)
	// The limits of other processes: the first argument is a process id, the third what to set.
	when(unix.SYS_PRLIMIT64, loadLow(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 5},
		loadLow(2), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
		loadHigh(2), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuseCall, allowCall)
	// The times of a file by a path; without a path they are those of an open file.
	when(unix.SYS_UTIMENSAT, loadLow(1), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
		loadHigh(1), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuseCall, allowCall)
	when(unix.SYS_FCHMOD, loadLow(1), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: refusedModes, SkipFalse: 1}, refuseCall,
		allowCall)
	if !c.Truncate {
		when(unix.SYS_TRUNCATE, refuseCall)
		when(unix.SYS_OPENAT2, noCall) // its flags are in memory
		// O_TRUNC empties the file with each of the four access modes.
		for number, flags := range opens {
			when(number, loadLow(flags), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.O_TRUNC, SkipFalse: 4},
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.O_ACCMODE},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_WRONLY, SkipTrue: 2},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_RDWR, SkipTrue: 1}, refuseCall, allowCall)
		}
	}
	families := []uint32{unix.AF_UNIX}
	if c.Network {
		families = append(families, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	}
	socket := []bpf.Instruction{loadLow(0)}
	for _, family := range families {
		socket = append(socket, bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipFalse: 1}, allowCall)
	}
	when(unix.SYS_SOCKET, append(socket, refuseCall)...)
	if !c.Network && !c.Connect {
		when(unix.SYS_CONNECT, refuseCall)
	}
	return bpf.Assemble(append(program, allowCall))
}

// install filters the system calls of this thread, and of the program that it executes, from now on. Without
// SPEC_ALLOW, older kernels would slow the processor down for every filtered process.
func install(program []bpf.RawInstruction) error {
	code := make([]unix.SockFilter, len(program))
	for i, in := range program {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	return seccomp(unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		&unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
}

// seccomp is seccomp(2).
func seccomp[T any](operation, flags uintptr, argument *T) error {
	if _, _, err := unix.Syscall(unix.SYS_SECCOMP, operation, flags, uintptr(unsafe.Pointer(argument))); err != 0 {
		return err
	}
	return nil
}
