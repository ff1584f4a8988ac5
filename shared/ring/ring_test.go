package ring

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func create(t testing.TB, slots, size int) *Ring {
	t.Helper()
	r, err := Create(slots, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// duplicate returns what a child process inherits: another descriptor of the same memory.
func duplicate(t testing.TB, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "ring")
}

// TestPart: a part has the memory of its slots, and its end is not that of the ring.
func TestPart(t *testing.T) {
	r := create(t, 5, 1000)
	p := r.Part(1, 3)
	if p.Slots() != 3 || p.SlotSize() != r.SlotSize() || len(p.Bytes()) != 3*r.SlotSize() ||
		cap(p.Bytes()) != len(p.Bytes()) {
		t.Fatalf("%d slots of %d bytes", p.Slots(), p.SlotSize())
	}
	for slot := range 3 {
		p.Slot(slot)[9] = byte(7 + slot)
		if r.Slot(1 + slot)[9] != byte(7+slot) {
			t.Errorf("slot %d of the part is not slot %d of the ring", slot, 1+slot)
		}
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if r.Slot(2)[9] != 8 {
		t.Error("the end of the part changes the ring")
	}
}

func TestRingShares(t *testing.T) {
	host := create(t, 3, 1000)
	if host.SlotSize() != 1024 || host.Slots() != 3 {
		t.Fatalf("%d slots of %d bytes", host.Slots(), host.SlotSize())
	}
	peer, err := Attach(duplicate(t, host.File()), 3, 1024)
	if err != nil {
		t.Fatal(err)
	}
	host.Slot(1)[5] = 7
	peer.Slot(2)[0] = 8
	if peer.Slot(1)[5] != 7 || host.Slot(2)[0] != 8 {
		t.Error("the mappings are not of one memory")
	}
	if host.Slot(0)[0] != 0 || len(host.Slot(1)) != 1024 || cap(host.Slot(1)) != 1024 {
		t.Error("slots overlap")
	}
	// The memory outlives a peer.
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := peer.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if host.Slot(2)[0] != 8 {
		t.Error("closing one mapping changed the other")
	}
}

func TestRingIsSealed(t *testing.T) {
	r := create(t, 2, 4096)
	for _, size := range []int64{0, 4096, 1 << 20} {
		if err := unix.Ftruncate(int(r.File().Fd()), size); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncate to %d: %v", size, err)
		}
	}
	if _, err := unix.FcntlInt(r.File().Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EPERM) {
		t.Errorf("a further seal: %v", err)
	}
}

func TestAttachRefuses(t *testing.T) {
	r := create(t, 4, 4096)
	for _, c := range []struct{ slots, size int }{
		{5, 4096}, {4, 8192}, {3, 4096}, {0, 4096}, {4, 0}, {-4, -4096}, {math.MaxInt, 2}, {1 << 62, 1 << 62},
		{1<<50 + 1, 4 * 4096}, // in 64 bits the product is the size of the ring
	} {
		if _, err := Attach(r.File(), c.slots, c.size); err == nil {
			t.Errorf("%d slots of %d bytes were accepted", c.slots, c.size)
		}
	}
	fd, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	unsealed := os.NewFile(uintptr(fd), "unsealed")
	defer unsealed.Close()
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, f := range []*os.File{unsealed, plain} {
		if err := f.Truncate(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := Attach(f, 1, 4096); err == nil {
			t.Errorf("the file %q, which is not sealed, was accepted", f.Name())
		}
		if _, err := f.Stat(); err != nil {
			t.Errorf("a refused file was closed: %v", err)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	for _, c := range []struct{ slots, size int }{
		{0, 1}, {1, 0}, {-1, -1}, {math.MaxInt, 256}, {1, math.MaxInt}, {1, 1 << 60},
	} {
		if r, err := Create(c.slots, c.size); err == nil {
			r.Close()
			t.Errorf("%d slots of %d bytes were made", c.slots, c.size)
		}
	}
}

// BenchmarkFill copies a batch of 2.56 MB into a slot, as the host does.
func BenchmarkFill(b *testing.B) {
	r := create(b, 2, 2_560_000)
	src := make([]byte, 2_560_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		copy(r.Slot(1), src)
	}
}

// TestReserve: memory is taken slot by slot and given back, and the other slots keep what they hold.
func TestReserve(t *testing.T) {
	const size = 1 << 20
	r, err := CreatePart(4, size, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	taken := func(want int) {
		t.Helper()
		var st unix.Stat_t
		if err := unix.Fstat(int(r.File().Fd()), &st); err != nil {
			t.Fatal(err)
		}
		if got := st.Blocks * 512 / size; got != int64(want) || st.Size != 4*size {
			t.Errorf("%d of %d bytes are reserved, want those of %d slots", st.Blocks*512, st.Size, want)
		}
	}
	taken(1)
	for _, slot := range []int{2, 3, 2} {
		if err := r.Reserve(slot); err != nil {
			t.Fatal(err)
		}
		r.Slot(slot)[7] = byte(slot)
	}
	taken(3)
	if err := r.Release(3); err != nil {
		t.Fatal(err)
	}
	taken(2)
	if a, b := r.Slot(2)[7], r.Slot(3)[7]; a != 2 || b != 0 {
		t.Errorf("the slots hold %d and %d, want 2 and 0", a, b)
	}
	if r.Part(0, 1).Reserve(0) == nil || r.Part(0, 1).Release(0) == nil {
		t.Error("a part of the ring owns memory")
	}
}
