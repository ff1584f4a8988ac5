package stage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Batch gives access to one batch during one call of Process. Tensors are addressed by the stage's port names. They are
// dense and row-major: element (row, t, i) of a port of shape [B, T, n] has index (row*T+t)*n + i.
//
// The slices are shared memory: writing to them changes the batch. Methods are safe for concurrent use. The stage must
// synchronize its own access to the slices.
type Batch struct {
	call  *stagepb.Call
	ports ports
	slot  []byte
	rands []rowRand

	mu         sync.Mutex // guards the rest
	rejected   []*stagepb.BadRow
	reported   map[int]map[string]json.RawMessage // by row and name
	unreported error                              // why something could not be reported
}

// rowRand is the generator of one row. It is seeded on first use in a call.
type rowRand struct {
	seeded bool
	source rand.ChaCha8
	rand   *rand.Rand
}

// reset points a pooled Batch at the tensors of a call.
func (b *Batch) reset(call *stagepb.Call, p ports, slot []byte) {
	b.call, b.ports, b.slot = call, p, slot
	if rows := b.Rows(); len(b.rands) < rows {
		b.rands = make([]rowRand, rows)
		for i := range b.rands {
			b.rands[i].rand = rand.New(&b.rands[i].source)
		}
	}
	for i := range b.rands {
		b.rands[i].seeded = false
	}
	b.rejected, b.reported, b.unreported = nil, nil, nil
}

// Float32 returns the elements of an f32 port. It panics if the port is not bound or has another dtype; the panic fails
// the call.
func (b *Batch) Float32(port string) []float32 { return view[float32](b, port, manifest.F32) }

// Int32 returns the elements of an i32 port. It panics like Float32.
func (b *Batch) Int32(port string) []int32 { return view[int32](b, port, manifest.I32) }

// Bytes returns the memory of a port of any dtype, little-endian. It panics if the port is not bound.
func (b *Batch) Bytes(port string) []byte { return b.tensor(port).In(b.slot) }

// Shape returns the port's shape in this batch. The caller must not modify it.
func (b *Batch) Shape(port string) []int { return b.tensor(port).Shape }

// Pad returns the value for the padding after the end of each row.
func (b *Batch) Pad(port string) float64 { return b.tensor(port).Pad }

// Rows returns B, the number of rows including empty ones.
func (b *Batch) Rows() int { return len(b.call.RowKeys) / KeySize }

// Key returns the key of a row, the only source of randomness that a stage may use.
func (b *Batch) Key(row int) [KeySize]byte {
	return [KeySize]byte(b.call.RowKeys[row*KeySize : (row+1)*KeySize])
}

// Clip returns the id of a row's clip as the data set's list names it, for messages. It is empty for an empty row, and
// from a host that does not send ids. Draw random numbers from Rand, not from the id.
func (b *Batch) Clip(row int) string {
	if row >= len(b.call.ClipIds) {
		return ""
	}
	return b.call.ClipIds[row]
}

// Rand returns the random generator of a row: ChaCha8 seeded with the row's key and 16 zero bytes. All calls for a row
// within one Process return the same generator, which continues its sequence. Different goroutines may use the
// generators of different rows.
func (b *Batch) Rand(row int) *rand.Rand {
	r := &b.rands[row]
	if !r.seeded {
		var seed [32]byte
		copy(seed[:], b.call.RowKeys[row*KeySize:(row+1)*KeySize])
		r.source.Seed(seed)
		r.seeded = true
	}
	return r.rand
}

// Bucket returns the index of the batch's bucket, as in Config.Shape.
func (b *Batch) Bucket() int { return int(b.call.Bucket) }

// Step returns the optimizer step that the batch is for, counted from 0, or -1 in evaluation. Use it for schedules.
func (b *Batch) Step() int64 { return b.call.Step }

// Epoch returns the epoch of the batch, counted from 0.
func (b *Batch) Epoch() int64 { return b.call.Epoch }

// Reject reports a row as unusable, with a reason for the owner of the data. The host quarantines the row's clip and
// sends the batch again with the row empty. Only the first reason for a row counts. Reject panics if the row does not
// exist.
func (b *Batch) Reject(row int, reason string) {
	if row < 0 || row >= b.Rows() {
		panic(fmt.Sprintf("row %d of a batch of %d rows was rejected", row, b.Rows()))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rejected {
		if r.Row == uint32(row) {
			return
		}
	}
	b.rejected = append(b.rejected, &stagepb.BadRow{Row: uint32(row), Reason: reason})
}

// badRows returns the rejected rows in ascending order.
func (b *Batch) badRows() []*stagepb.BadRow {
	slices.SortFunc(b.rejected, func(x, y *stagepb.BadRow) int { return cmp.Compare(x.Row, y.Row) })
	return b.rejected
}

func (b *Batch) tensor(port string) ring.Tensor {
	t, ok := b.ports[port]
	if !ok {
		panic(fmt.Sprintf("port %q is not bound: is it in plugin.json?", port))
	}
	return t
}

// view returns the elements of a port. Configure has checked that the memory is aligned.
func view[T any](b *Batch, port string, want manifest.DType) []T {
	t := b.tensor(port)
	if t.DType != want {
		panic(fmt.Sprintf("port %q is %s, not %s", port, t.DType, want))
	}
	raw := t.In(b.slot)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/want.Size())
}
