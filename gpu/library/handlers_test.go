package library

import (
	"syscall"
	"testing"
	"unsafe"
)

// handling is how the kernel handles a signal: its function, flags, return and mask.
type handling [4]uint64

// handle returns how a signal is handled, and changes it if by is not nil.
func handle(t *testing.T, s syscall.Signal, by *handling) (before handling) {
	t.Helper()
	if _, _, err := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(by)),
		uintptr(unsafe.Pointer(&before)), unsafe.Sizeof(before[3]), 0, 0); err != 0 {
		t.Fatal(err)
	}
	return before
}

// TestKeepHandlers: what a library has changed is as before when the last one that keeps the handlers restores them.
func TestKeepHandlers(t *testing.T) {
	const onStack = 0x08000000
	before := handle(t, syscall.SIGUSR2, nil)
	if before[1]&onStack == 0 {
		t.Fatalf("Go handles a signal with the flags %x", before[1])
	}
	first, second := KeepHandlers(), KeepHandlers()
	changed := before
	changed[1] &^= onStack
	handle(t, syscall.SIGUSR2, &changed)
	first()
	if now := handle(t, syscall.SIGUSR2, nil); now != changed {
		t.Errorf("restored before the last one: %x", now)
	}
	second()
	if now := handle(t, syscall.SIGUSR2, nil); now != before {
		t.Errorf("the signal is handled by %x, before by %x", now, before)
	}
}
