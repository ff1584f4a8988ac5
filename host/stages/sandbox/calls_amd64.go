package sandbox

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

// opens are the system calls that open a file by its path, with the number of the argument that has the flags.
var opens = map[uint32]uint32{unix.SYS_OPENAT: 2, unix.SYS_OPEN: 1}

// refusedHere are the refused system calls that other architectures lack.
var refusedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT,
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
}
