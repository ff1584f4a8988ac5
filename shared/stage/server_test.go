package stage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

func putFloat(b []byte, i int, bits uint32) { binary.LittleEndian.PutUint32(b[4*i:], bits) }
func getFloat(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

func newTestServer(t *testing.T) (*Server, *ring.Ring) {
	t.Helper()
	r, err := ring.Create(3, testLayout.Size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	s, err := NewServer(Plugin{ID: "test", Version: "1", Stages: map[string]func() Stage{
		"scale": func() Stage { return new(scale) },
	}}, r.File(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func TestConfigureRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*stagepb.ConfigureRequest)
		want   string
	}{
		{
			"unknown stage", func(r *stagepb.ConfigureRequest) { r.Instances[0].Stage = "blur" },
			`instance "first": plugin test 1 has no stage "blur"`,
		},
		{
			"unknown key", func(r *stagepb.ConfigureRequest) { r.Instances[0].ConfigJson = `{"facto": 1}` },
			`unknown field "facto"`,
		},
		{
			"two values", func(r *stagepb.ConfigureRequest) { r.Instances[0].ConfigJson = `{} {}` },
			"more than one JSON value",
		},
		{
			"a hint", func(r *stagepb.ConfigureRequest) { r.Instances[0].ConfigJson = `{"factor": 0}` },
			"factor is 0\nhint: take another factor",
		},
		{
			"unknown tensor", func(r *stagepb.ConfigureRequest) { r.Instances[0].Inputs["y"] = "mel" },
			`port "y": bucket 0 has no tensor "mel"`,
		},
		{
			"two tensors for a port", func(r *stagepb.ConfigureRequest) { r.Instances[0].Outputs["x"] = "mel" },
			`port "x" is bound to "wave" as an input and to "mel"`,
		},
		{"no layouts", func(r *stagepb.ConfigureRequest) { r.Layouts = nil }, "no layouts"},
		{
			"unknown type", func(r *stagepb.ConfigureRequest) { r.Layouts[0].Tensors[0].Dtype = "f8" },
			`unknown type "f8"`,
		},
		{"unaligned", func(r *stagepb.ConfigureRequest) { r.Layouts[0].Tensors[0].Offset = 8 }, "not aligned"},
		{"overflow", func(r *stagepb.ConfigureRequest) {
			r.Layouts[0].Tensors[0].Shape = []uint64{1 << 30, 1 << 30, 1 << 30}
		}, "has the shape"},
		{"twice", func(r *stagepb.ConfigureRequest) {
			r.Layouts[0].Tensors = append(r.Layouts[0].Tensors, r.Layouts[0].Tensors[0])
		}, `two tensors are named "wave"`},
		{"features", func(r *stagepb.ConfigureRequest) { r.FeaturesJson = "{" }, "feature contract"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newTestServer(t)
			req := configureRequest("")
			c.change(req)
			_, err := s.Configure(t.Context(), req)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestCallOrder(t *testing.T) {
	s, r := newTestServer(t)
	attach := &stagepb.AttachRequest{Slots: 3, SlotSize: uint64(r.SlotSize())}
	if _, err := s.Attach(t.Context(), attach); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("attach before configure: %v", err)
	}
	if err := s.Process(nil); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("process before attach: %v", err)
	}
	if _, err := s.Configure(t.Context(), configureRequest("")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Configure(t.Context(), configureRequest("")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("second configure: %v", err)
	}
	for _, bad := range []*stagepb.AttachRequest{
		{Slots: 3, SlotSize: 64},
		{Slots: 3, SlotSize: 4096 * 1024},
		{Slots: 0, SlotSize: uint64(r.SlotSize())},
		{Slots: 1 << 31, SlotSize: 1 << 62},
	} {
		if _, err := s.Attach(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("attach %v: %v", bad, err)
		}
	}
	if _, err := s.Attach(t.Context(), attach); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attach(t.Context(), attach); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("second attach: %v", err)
	}
	for _, c := range []struct {
		call *stagepb.Call
		want string
	}{
		{&stagepb.Call{Instance: 1}, "call for instance 1 of 1"},
		{&stagepb.Call{Bucket: 7}, "call for bucket 7 of 1"},
		{&stagepb.Call{Slot: 3}, "call for slot 3 of 3"},
		{&stagepb.Call{RowKeys: make([]byte, 9)}, "row keys of 9 bytes"},
	} {
		if res := s.call(t.Context(), s.ring, c.call); !strings.Contains(res.Error, c.want) {
			t.Errorf("call %v: %q, want %q", c.call, res.Error, c.want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestNewServerRefuses(t *testing.T) {
	stages := map[string]func() Stage{"s": func() Stage { return new(scale) }}
	for _, p := range []Plugin{{}, {ID: "a"}, {ID: "a", Version: "1"}, {Version: "1", Stages: stages},
		{ID: "a", Version: "1", Stages: map[string]func() Stage{"s": nil}}} {
		if _, err := NewServer(p, nil, nil); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
}

// testBatch returns a batch of two rows, and its slot.
func testBatch() (*Batch, []byte) {
	layout := ring.NewLayout([]ring.Tensor{
		{Name: "wave", DType: manifest.F32, Shape: []int{2, 4}, Pad: -1},
		{Name: "lengths", DType: manifest.I32, Shape: []int{2}},
		{Name: "half", DType: manifest.BF16, Shape: []int{2, 1}},
	}, nil)
	slot := make([]byte, layout.Size)
	p := ports{}
	for _, t := range layout.Tensors {
		p["port_"+t.Name] = t
	}
	b := new(Batch)
	keys := append(bytes.Repeat([]byte{1}, KeySize), bytes.Repeat([]byte{2}, KeySize)...)
	b.reset(&stagepb.Call{Bucket: 4, Step: 7, Epoch: 2, RowKeys: keys, ClipIds: []string{"A/0001"}}, p, slot)
	return b, slot
}

func TestBatchViews(t *testing.T) {
	b, slot := testBatch()
	b.Float32("port_wave")[5] = 1.5
	b.Int32("port_lengths")[1] = 258
	b.Bytes("port_half")[3] = 9
	if got := getFloat(slot, 5); got != 1.5 {
		t.Errorf("the slot holds %v", got)
	}
	if slot[256+4] != 2 || slot[256+5] != 1 || slot[512+3] != 9 {
		t.Error("a view is not at the offset of its tensor")
	}
	if n := len(b.Float32("port_wave")); n != 8 {
		t.Errorf("%d elements, want 8", n)
	}
	if b.Rows() != 2 || b.Step() != 7 || b.Epoch() != 2 || b.Bucket() != 4 || b.Pad("port_wave") != -1 ||
		b.Shape("port_wave")[1] != 4 {
		t.Error("the batch differs from the call")
	}
	if b.Clip(0) != "A/0001" || b.Clip(1) != "" { // an older host sends none
		t.Errorf("clips %q and %q", b.Clip(0), b.Clip(1))
	}
	for name, f := range map[string]func(){
		`port "nothing" is not bound`:    func() { b.Float32("nothing") },
		`port "port_half" is bf16`:       func() { b.Float32("port_half") },
		`port "port_wave" is f32`:        func() { b.Int32("port_wave") },
		"row 2 of a batch of 2 rows was": func() { b.Reject(2, "") },
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, name) {
					t.Errorf("panic %q, want %q", p, name)
				}
			}()
			f()
		}()
	}
}

func TestBatchRandom(t *testing.T) {
	b, _ := testBatch()
	var seed [32]byte
	copy(seed[:], bytes.Repeat([]byte{2}, KeySize))
	want := rand.New(rand.NewChaCha8(seed))
	first, second := b.Rand(1).Uint64(), b.Rand(1).Uint64()
	if first != want.Uint64() || second != want.Uint64() {
		t.Error("the generator is not ChaCha8 seeded with the key, or restarts within a call")
	}
	b.reset(b.call, b.ports, b.slot)
	if b.Rand(1).Uint64() != first {
		t.Error("the generator does not restart in the next call")
	}
	if b.Rand(0).Uint64() == first || b.Key(0) == b.Key(1) {
		t.Error("two rows share their draws")
	}
}

func TestBatchRejects(t *testing.T) {
	b, _ := testBatch()
	b.Reject(1, "first")
	b.Reject(0, "zero")
	b.Reject(1, "second")
	rows := b.badRows()
	if len(rows) != 2 || rows[0].Reason != "zero" || rows[1].Reason != "first" {
		t.Errorf("bad rows %v", rows)
	}
	b.reset(b.call, b.ports, b.slot)
	if len(b.badRows()) != 0 {
		t.Error("the next call starts with bad rows")
	}
}

// TestCallAllocates bounds the allocations of a call, independent of the size of its tensors.
func TestCallAllocates(t *testing.T) {
	s, r := newTestServer(t)
	if _, err := s.Configure(t.Context(), configureRequest("")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attach(t.Context(), &stagepb.AttachRequest{Slots: 3, SlotSize: uint64(r.SlotSize())}); err != nil {
		t.Fatal(err)
	}
	call := &stagepb.Call{RowKeys: make([]byte, 2*KeySize)}
	if n := testing.AllocsPerRun(100, func() { s.call(context.Background(), s.ring, call) }); n > 2 {
		t.Errorf("%v allocations a call", n)
	}
	if res := s.call(t.Context(), s.ring, call); res.Error != "" {
		t.Error(errors.New(res.Error))
	}
}
