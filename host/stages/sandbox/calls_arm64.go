package sandbox

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// refusedHere are the refused system calls that other architectures lack.
var refusedHere []uint32
