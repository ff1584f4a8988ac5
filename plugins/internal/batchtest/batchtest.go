// Package batchtest sends batches through a stage that makes tensors of others, with the real protocol server and real
// shared memory, for tests of the computed values:
//
//	r, err := batchtest.New(t, new(logmel.Stage), batchtest.Options{Features: features, Inputs: inputs, Outputs: outputs})
//	...
//	copy(r.Float32("waveform"), clip)
//	result := r.Process(t)
//	mel := r.Float32("mel_spectrograms")
//
// Package stagetest checks the rules of the protocol.
package batchtest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Options describes an instance whose ports are bound to tensors of the same names.
type Options struct {
	Features manifest.Features
	Config   string            // a JSON object, or empty
	Files    map[string]string // names of bundle files to absolute paths
	Device   string            // UUID of the GPU, or empty
	Inputs   []ring.Tensor     // with name, dtype, shape and pad
	Outputs  []ring.Tensor
}

// Runner is a configured stage with one slot of memory for its batches.
type Runner struct {
	server *stage.Server
	memory *ring.Ring
	layout ring.Layout
	rows   int
}

// New configures the stage. The error is that of Configure. The runner lives until the test ends.
func New(t testing.TB, s stage.Stage, o Options) (*Runner, error) {
	t.Helper()
	r := &Runner{
		layout: ring.NewLayout(append(append([]ring.Tensor{}, o.Inputs...), o.Outputs...), nil),
		rows:   o.Inputs[0].Shape[0],
	}
	features, err := json.Marshal(o.Features)
	if err != nil {
		t.Fatal(err)
	}
	instance := &stagepb.Instance{
		Name: "test", Stage: "test", ConfigJson: o.Config, Inputs: map[string]string{}, Outputs: map[string]string{},
	}
	for _, x := range o.Inputs {
		instance.Inputs[x.Name] = x.Name
	}
	for _, x := range o.Outputs {
		instance.Outputs[x.Name] = x.Name
	}
	layout := &stagepb.Layout{}
	for _, x := range r.layout.Tensors {
		p := &stagepb.Tensor{Name: x.Name, Dtype: string(x.DType), Pad: x.Pad, Offset: uint64(x.Offset)}
		for _, d := range x.Shape {
			p.Shape = append(p.Shape, uint64(d))
		}
		layout.Tensors = append(layout.Tensors, p)
	}
	if r.memory, err = ring.Create(1, r.layout.Size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.memory.Close() })
	plugin := stage.Plugin{
		ID: "test", Version: "1", Stages: map[string]func() stage.Stage{"test": func() stage.Stage { return s }},
	}
	if r.server, err = stage.NewServer(
		plugin, r.memory.File(), slog.New(slog.NewTextHandler(t.Output(), nil)),
	); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.server.Close() })
	request := &stagepb.ConfigureRequest{
		FeaturesJson: string(features), Layouts: []*stagepb.Layout{layout}, Instances: []*stagepb.Instance{instance},
		Files: o.Files, DeviceUuid: o.Device,
	}
	if _, err := r.server.Configure(t.Context(), request); err != nil {
		return nil, err
	}
	if _, err := r.server.Attach(t.Context(), &stagepb.AttachRequest{
		Slots: 1, SlotSize: uint64(r.memory.SlotSize()),
	}); err != nil {
		t.Fatal(err)
	}
	return r, nil
}

// Float32 returns the elements of an f32 tensor in the slot.
func (r *Runner) Float32(name string) []float32 { return view[float32](r, name) }

// Int32 returns the elements of an i32 tensor in the slot.
func (r *Runner) Int32(name string) []int32 { return view[int32](r, name) }

// Process runs the stage on the content of the slot.
func (r *Runner) Process(t testing.TB) *stagepb.Result {
	t.Helper()
	return Call(t, r.server, make([]byte, r.rows*stage.KeySize))
}

// Call runs the stage of a server on the content of its slot, whose rows have these keys, and asks for what it draws.
func Call(t testing.TB, server *stage.Server, keys []byte) *stagepb.Result {
	t.Helper()
	s := &stream{ctx: t.Context(), call: &stagepb.Call{RowKeys: keys, Report: true}}
	if err := server.Process(s); err != nil {
		t.Fatal(err)
	}
	return s.result
}

func view[T float32 | int32](r *Runner, name string) []T {
	b := r.layout.View(r.memory.Slot(0), name)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// stream is the host's side of a stream with one call.
type stream struct {
	stagepb.Stage_ProcessServer
	ctx    context.Context
	call   *stagepb.Call
	result *stagepb.Result
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) Recv() (*stagepb.Call, error) {
	if s.call == nil {
		return nil, io.EOF
	}
	call := s.call
	s.call = nil
	return call, nil
}

func (s *stream) Send(r *stagepb.Result) error {
	s.result = r
	return nil
}
