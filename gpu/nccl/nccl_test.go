package nccl_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu/nccl"
	"github.com/xtts-host/xtts-host/gpu/nccl/nccltest"
)

// TestOpen: the library next to another one comes first; a name without a folder has no such folder.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, nccl.Name), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := nccl.Open(filepath.Join(dir, "libother.so")); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want the loader's refusal of the file in %s", err, dir)
	}
	t.Chdir(dir)
	if _, err := nccl.Open("libother.so"); err != nil && strings.Contains(err.Error(), dir) {
		t.Errorf("a file of the working folder is tried: %v", err)
	}
	file := nccltest.Build(t)
	l, err := nccl.Open(filepath.Join(filepath.Dir(file), "libother.so"))
	if err != nil {
		t.Fatal(err)
	}
	if l.Version() != "2.28.9" || l.Path() != file {
		t.Errorf("version %s of %s, want 2.28.9 of %s", l.Version(), l.Path(), file)
	}
}

func TestMissingFunction(t *testing.T) {
	file := nccltest.Build(t, "-DWITHOUT_BROADCAST")
	_, err := nccl.Open(file)
	if err == nil || err.Error() != "load NCCL: "+file+" has no ncclBroadcast" {
		t.Errorf("error %v", err)
	}
}

// TestErrors: an error has the call, and what NCCL says.
func TestErrors(t *testing.T) {
	l := nccltest.Open(t)
	id, err := l.NewID()
	if err != nil {
		t.Fatal(err)
	}
	want := "join as rank 2 of 2: ncclCommInitRank: invalid argument: Invalid rank requested : 2/2"
	if _, err := l.Join(id, 2, 2); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	c := nccltest.Join(t, l, 1)[0]
	x := newValues(t, []float32{1})
	err = c.AllReduce(0, nccl.Range{Address: x.address(), Elements: 1, DType: 2})
	if want := "ncclAllReduce: invalid argument: invalid type"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := c.Broadcast(0, nccl.Range{Address: x.address(), Elements: 1, DType: nccl.F32}); err != nil {
		t.Errorf("the thread is still in a group that failed: %v", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := c.AllReduce(0, nccl.Range{}); err != nccl.ErrEnded || c.AsyncError() != nccl.ErrEnded {
		t.Errorf("a closed communicator: %v, %v", err, c.AsyncError())
	}
}

// values are numbers in memory that does not move, with one type or the other.
type values[T float32 | uint16] []T

func newValues[T float32 | uint16](t testing.TB, from []T) values[T] {
	v := slices.Clone(from)
	var pin runtime.Pinner
	pin.Pin(&v[0])
	t.Cleanup(pin.Unpin)
	return v
}

func (v values[T]) address() uint64 { return uint64(uintptr(unsafe.Pointer(&v[0]))) }

// all is the range of all values.
func (v values[T]) all() nccl.Range {
	r := nccl.Range{Address: v.address(), Elements: len(v), DType: nccl.F32}
	if unsafe.Sizeof(v[0]) == 2 {
		r.DType = nccl.BF16
	}
	return r
}

// bf16 rounds to the nearest number, and to the even one of two.
func bf16(f float32) uint16 {
	bits := math.Float32bits(f)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func wide(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// of are numbers of a rank, of both signs and of many sizes.
func of(rank, n int) (f []float32, b []uint16) {
	for i := range n {
		x := float32(math.Sin(float64(i*7+rank*1013)) * math.Exp(float64(i%13-6)))
		f, b = append(f, x), append(b, bf16(x))
	}
	return f, b
}

// sums adds the numbers of so many ranks in their order. Those of bf16 are rounded once, as the fake does; NCCL rounds
// at every rank, which is the same with two.
func sums(size, n int) (f []float32, b []uint16) {
	f, b = of(0, n)
	all := make([]float32, n)
	for i := range all {
		all[i] = wide(b[i])
	}
	for rank := 1; rank < size; rank++ {
		moreF, moreB := of(rank, n)
		for i := range n {
			f[i], all[i] = f[i]+moreF[i], all[i]+wide(moreB[i])
		}
	}
	for i := range all {
		b[i] = bf16(all[i])
	}
	return f, b
}

// onAll calls f for every rank at the same time.
func onAll(t *testing.T, all []*nccl.Comm, f func(rank int, c *nccl.Comm) error) {
	t.Helper()
	errs := make(chan error)
	for rank, c := range all {
		go func() { errs <- f(rank, c) }()
	}
	for range all {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestCollectives sums, and then sends, values of both types, in groups, between two and three ranks.
func TestCollectives(t *testing.T) {
	l := nccltest.Open(t)
	const n = 150_001 // several of the fake's pieces
	for _, size := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d ranks", size), func(t *testing.T) {
			all := nccltest.Join(t, l, size)
			wantF, wantB := sums(size, n)
			onAll(t, all, func(rank int, c *nccl.Comm) error {
				f, b := of(rank, n)
				x, y, one := newValues(t, f), newValues(t, b), newValues(t, []float32{float32(rank)})
				if err := c.AllReduce(0, x.all(), y.all(), one.all()); err != nil {
					return err
				}
				if !slices.Equal(x, wantF) || !slices.Equal(y, wantB) || one[0] != float32(size*(size-1)/2) {
					return fmt.Errorf("rank %d has other sums", rank)
				}
				f, b = of(rank, n)
				copy(x, f)
				copy(y, b)
				if err := c.Broadcast(0, y.all(), x.all()); err != nil {
					return err
				}
				if f, b = of(0, n); !slices.Equal(x, f) || !slices.Equal(y, b) {
					return fmt.Errorf("rank %d does not have the values of rank 0", rank)
				}
				return c.AsyncError()
			})
			onAll(t, all, func(_ int, c *nccl.Comm) error { return c.Close() })
		})
	}
}

// TestDifferentCalls: the fake finds ranks that do not queue the same, and the error stays.
func TestDifferentCalls(t *testing.T) {
	all := nccltest.Join(t, nccltest.Open(t), 2)
	onAll(t, all, func(rank int, c *nccl.Comm) error {
		x := newValues(t, make([]float32, 3))
		r := x.all()
		r.Elements -= rank
		const want = "ncclGroupEnd: invalid usage: the ranks have called for different operations"
		if err := c.AllReduce(0, r); err == nil || err.Error() != want {
			return fmt.Errorf("%v, want %s", err, want)
		}
		const later = "NCCL, at work: invalid usage: the ranks have called for different operations"
		if err := c.AsyncError(); err == nil || err.Error() != later {
			return fmt.Errorf("%v, want %s", err, later)
		}
		return nil
	})
}

// TestAbort frees a rank that waits for another one.
func TestAbort(t *testing.T) {
	all := nccltest.Join(t, nccltest.Open(t), 2)
	x := newValues(t, make([]float32, 3))
	waits := make(chan error)
	go func() { waits <- all[0].AllReduce(0, x.all()) }()
	select {
	case err := <-waits:
		t.Fatalf("a rank does not wait for the other: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := all[0].AsyncError(); err != nil {
		t.Errorf("the error of a rank that waits is %v", err)
	}
	began := time.Now()
	if err := all[0].Abort(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-waits:
		if !errors.Is(err, nccl.ErrEnded) {
			t.Errorf("the rank that has waited has error %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the rank still waits")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the abort took %v", took)
	}
	if err := errors.Join(all[0].Abort(), all[0].Close(), all[1].Abort()); err != nil {
		t.Error(err)
	}
}
