package ort_test

import (
	"errors"
	"math"
	"os"
	"testing"
	"unsafe"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

func TestBuffer(t *testing.T) {
	b := buffer(t, 5000)
	mem := b.Bytes()
	if len(mem) != 5000 || uintptr(unsafe.Pointer(&mem[0]))%uintptr(os.Getpagesize()) != 0 {
		t.Errorf("%d bytes at %p", len(mem), &mem[0])
	}
	for i, x := range mem {
		if x != 0 {
			t.Fatalf("byte %d is %d", i, x)
		}
	}
	mem[4999] = 1
	for range 2 {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if b.Bytes() != nil {
		t.Error("memory after Close")
	}
}

func TestBufferSize(t *testing.T) {
	for _, size := range []int{0, -1} {
		if _, err := ort.NewBuffer(size); err == nil {
			t.Errorf("%d bytes: no error", size)
		}
	}
	if _, err := ort.NewBuffer(math.MaxInt - 1<<20); !errors.Is(err, ort.ErrOutOfMemory) {
		t.Errorf("more than the address space: %v", err)
	}
}

func TestView(t *testing.T) {
	mem := buffer(t, 64).Bytes()
	ort.View[float32](mem)[1] = 1
	if bits := ort.View[uint16](mem); len(bits) != 32 || bits[2] != 0 || bits[3] != 0x3f80 {
		t.Errorf("1.0 as halves: %#x", bits[:4])
	}
	if v := ort.View[float64](nil); len(v) != 0 {
		t.Errorf("view of nothing has %d elements", len(v))
	}
	for name, bad := range map[string][]byte{"misaligned": mem[4:20], "ragged": mem[:12]} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			ort.View[int64](bad)
		}()
	}
}
