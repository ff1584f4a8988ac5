package device

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
)

// newCard returns a fake card, which reports every misuse: also a context that is closed before what was made with it.
func newCard(t *testing.T) *gputest.Context {
	t.Helper()
	return gputest.New(gputest.Config{
		Device: gpu.Device{Index: 3, UUID: "GPU-1"}, Memory: 1000 * gpu.MB, Misuse: func(err error) { t.Error(err) },
	})
}

// mapped returns memory outside of Go's heap, as a ring has it.
func mapped(t *testing.T) []byte {
	t.Helper()
	mem, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(mem) })
	return mem
}

// isOpen reports whether the context can still be used.
func isOpen(context gpu.Context) bool {
	stream, err := context.NewStream()
	if err != nil {
		return false
	}
	return stream.Close() == nil
}

// TestOpen: a Device has all that a model needs, and Close releases it, however often it is called.
func TestOpen(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	card := newCard(t)
	d, err := open(card, Config{Ring: mapped(t), MemoryLimit: 7, TF32: true, Deterministic: true})
	if err != nil {
		t.Fatal(err)
	}
	if d.Compute == nil || d.Transfer == nil || d.Compute == d.Transfer || d.Timer == nil || !d.Deterministic {
		t.Errorf("%+v", d)
	}
	if d.CUDA.Device != 3 || d.CUDA.Stream != d.Compute.Pointer() || d.CUDA.MemoryLimit != 7 || !d.CUDA.TF32 {
		t.Errorf("ONNX Runtime gets %+v", d.CUDA)
	}
	if d.LimitMemory(9); d.CUDA.MemoryLimit != 9 {
		t.Errorf("a limit of %d bytes, want 9", d.CUDA.MemoryLimit)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if d.Context != nil {
		t.Error("a closed Device still has its context")
	}
}

// TestOpenFails: after an error nothing is open.
func TestOpenFails(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	broken := errors.New("broken")
	var misuse []error
	card := gputest.New(gputest.Config{Misuse: func(err error) { misuse = append(misuse, err) }})
	card.Fail(gputest.Register, 1, broken)
	d, err := open(card, Config{Ring: mapped(t)})
	if d != nil || !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "pin the ring: ") {
		t.Errorf("%v, %v", d, err)
	}
	if misuse != nil {
		t.Errorf("closed in a wrong order: %v", misuse)
	}
	if isOpen(card) {
		t.Error("the context is open")
	}
	if _, err := Open(Config{UUID: "GPU-that-no-machine-has"}); err == nil {
		t.Error("a GPU that is not there was opened")
	}
}

// TestCPU: the zero Device is the CPU: nothing is bound, limited or closed.
func TestCPU(t *testing.T) {
	var d Device
	d.Enter()()
	d.LimitMemory(9)
	full := fmt.Errorf("slot: %w", gpu.ErrOutOfMemory)
	if err := d.Full(full); err != full {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestEnter: a goroutine on any thread can use the GPU after Enter.
func TestEnter(t *testing.T) {
	card := newCard(t)
	d := &Device{}
	d.Context = card
	done := make(chan error)
	go func() {
		defer d.Enter()()
		memory, err := card.Allocate(1)
		if err == nil {
			err = memory.Close()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestFull: errors about memory say how much of the card is free, others stay as they are.
func TestFull(t *testing.T) {
	card := newCard(t)
	d := &Device{}
	d.Context = card
	defer d.Enter()()
	memory, err := card.Allocate(300 * gpu.MB)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	err = d.Full(fmt.Errorf("slot 2: %w", gpu.ErrOutOfMemory))
	want := "slot 2: " + gpu.ErrOutOfMemory.Error() + ": 700 of its 1000 MB are free"
	if !errors.Is(err, gpu.ErrOutOfMemory) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	other := errors.New("other")
	if err := d.Full(other); err != other {
		t.Error(err)
	}
	if err := d.Full(nil); err != nil {
		t.Error(err)
	}
}
