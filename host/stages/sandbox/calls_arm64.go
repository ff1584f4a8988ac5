package sandbox

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// opens are the system calls that open a file by its path, with the number of the argument that has the flags.
var opens = map[uint32]uint32{unix.SYS_OPENAT: 2}

// refusedHere are the refused system calls that other architectures lack.
var refusedHere []uint32
