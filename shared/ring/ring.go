package ring

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Ring is a mapping of the shared memory. The host creates it, and every plugin process attaches to it.
type Ring struct {
	file     *os.File // nil: a part, which owns nothing
	mem      []byte
	slots    int
	slotSize int
}

// Create allocates slots of slotSize bytes (rounded up to Align) in a memfd. The memfd is sealed against shrinking and
// growing, so no peer can make a later access fail with SIGBUS. It has no name, so nothing remains after the processes
// end. Create reserves all pages, so a later access cannot run out of memory.
func Create(slots, slotSize int) (*Ring, error) { return CreatePart(slots, slotSize, slots) }

// CreatePart is Create, but it reserves only the pages of the first slots. Reserve the others before they are used.
func CreatePart(slots, slotSize, reserved int) (*Ring, error) {
	if slots < 1 || slotSize < 1 || slotSize > math.MaxInt/slots-Align {
		return nil, fmt.Errorf("ring of %d slots of %d bytes", slots, slotSize)
	}
	slotSize = (slotSize + Align - 1) &^ (Align - 1)
	size := int64(min(reserved, slots)) * int64(slotSize)
	if err := room(size); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("xtts-host-ring", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create ring memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "xtts-host-ring")
	err = unix.Ftruncate(fd, int64(slots)*int64(slotSize))
	if err == nil && size > 0 {
		err = unix.Fallocate(fd, 0, 0, size)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("reserve %d MiB of ring memory: %w", size>>20, err)
	}
	if _, err := unix.FcntlInt(
		uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL,
	); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal ring memory: %w", err)
	}
	r, err := Attach(f, slots, slotSize)
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// room returns an error if so many bytes are not available.
func room(size int64) error {
	if free, err := available(); err == nil && size > free {
		return fmt.Errorf("reserve %d MiB of ring memory: %d MiB are available", size>>20, free>>20)
	}
	return nil
}

// errPart means that only the whole ring reserves and releases memory.
var errPart = errors.New("a part of a ring owns no memory")

// Reserve reserves the pages of slot i, so that a later access cannot run out of memory. It keeps what is in them.
func (r *Ring) Reserve(i int) error {
	if r.file == nil {
		return errPart
	}
	if err := room(int64(r.slotSize)); err != nil {
		return err
	}
	if err := unix.Fallocate(int(r.file.Fd()), 0, int64(i)*int64(r.slotSize), int64(r.slotSize)); err != nil {
		return fmt.Errorf("reserve %d MiB of ring memory: %w", r.slotSize>>20, err)
	}
	return nil
}

// Release gives the pages of slot i back to the system, but for those that it shares with the slots beside it. All
// processes then read zeros there. The memory must not be pinned for a GPU, which would go on using the old pages.
func (r *Ring) Release(i int) error {
	if r.file == nil {
		return errPart
	}
	return unix.Fallocate(int(r.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
		int64(i)*int64(r.slotSize), int64(r.slotSize))
}

// available returns the number of bytes that the machine can provide without swapping. A memfd has no limit of its own:
// if memory runs out, the kernel does not fail the reservation but kills a process.
func available() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo: no MemAvailable")
}

// Attach maps the ring of an inherited file descriptor. The ring then owns f; on an error the caller keeps it. Attach
// refuses memory that is not exactly slots*slotSize bytes, because then the two sides disagree about the offsets of
// slots. It refuses a file that is not sealed, because a peer could shrink it during an access.
func Attach(f *os.File, slots, slotSize int) (*Ring, error) {
	if slots < 1 || slotSize < 1 || slots > math.MaxInt/slotSize {
		return nil, fmt.Errorf("attach ring: %d slots of %d bytes", slots, slotSize)
	}
	size := slots * slotSize
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, fmt.Errorf("attach ring: %w", err)
	}
	if st.Size != int64(size) {
		return nil, fmt.Errorf("attach ring: memory of %d bytes is not %d slots of %d", st.Size, slots, slotSize)
	}
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, fmt.Errorf("attach ring: %s is not sealed memory", f.Name())
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("attach ring: %w", err)
	}
	return &Ring{file: f, mem: mem, slots: slots, slotSize: slotSize}, nil
}

// Part returns the slots from first on as a ring of their own, whose slot 0 is slot first. It is valid until r is
// closed, and has no File.
func (r *Ring) Part(first, slots int) *Ring {
	from, to := first*r.slotSize, (first+slots)*r.slotSize
	return &Ring{mem: r.mem[from:to:to], slots: slots, slotSize: r.slotSize}
}

// File returns the descriptor that plugin processes inherit. The ring keeps ownership.
func (r *Ring) File() *os.File { return r.file }

// Slots returns the number of slots. SlotSize returns the size of each in bytes.
func (r *Ring) Slots() int    { return r.slots }
func (r *Ring) SlotSize() int { return r.slotSize }

// Bytes returns the memory of all slots, for example to pin it. It is valid until Close.
func (r *Ring) Bytes() []byte { return r.mem }

// Slot returns the memory of slot i, valid until Close. The caller must own the slot.
func (r *Ring) Slot(i int) []byte {
	return r.mem[i*r.slotSize : (i+1)*r.slotSize : (i+1)*r.slotSize]
}

// Close unmaps the memory. Slices of slots are invalid afterwards. Close is idempotent.
func (r *Ring) Close() error {
	if r.mem == nil {
		return nil
	}
	mem := r.mem
	r.mem = nil
	if r.file == nil {
		return nil
	}
	err := unix.Munmap(mem)
	if cerr := r.file.Close(); err == nil {
		err = cerr
	}
	return err
}
