// Package augmenttest sends batches of given rows and keys through an augment stage, with the real protocol server and
// real shared memory, for tests of the computed values:
//
//	r, err := augmenttest.New(t, new(waveaug.Stage), augmenttest.Options{
//		Data: "waveform", Lengths: "waveform_lengths", Shape: []int{8000},
//	})
//	...
//	out, err := r.Process(t, []augmenttest.Row{{Key: key, Data: clip}})
//
// Package stagetest checks the rules of the protocol.
package augmenttest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/xtts-host/xtts-host/plugins/internal/batchtest"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Pad is the pad value of the data.
const Pad = -2.5

// Options describes an instance whose ports are bound to tensors of the same names.
type Options struct {
	Data    string            // the port of the f32 tensor that is edited
	Lengths string            // the port of the i32[B] tensor that counts its axis 1
	Shape   []int             // the data's shape without B
	Config  string            // a JSON object, or empty
	Device  string            // UUID of the GPU, or empty
	Rate    int               // sample rate of the feature contract, in Hz; 0 for none
	Folders map[string]string // paths of data folders
	Resizes bool              // the lengths are an output, too
}

// Row is one row of a batch: its key and the valid part of its data.
type Row struct {
	Key  [stage.KeySize]byte
	Data []float32
}

// Runner is a configured stage.
type Runner struct {
	// Draws are what the stage reported of the rows of the last batch, as JSON.
	Draws map[int]string
	// Lengths are those of the rows after the last batch.
	Lengths []int

	options Options
	server  *stage.Server
	memory  *ring.Ring
	layout  ring.Layout
}

// maxRows is the number of rows of the layout. A batch with fewer rows has empty rows at the end.
const maxRows = 8

// New configures the stage. The error is that of Configure.
func New(t testing.TB, s stage.Stage, o Options) (*Runner, error) {
	t.Helper()
	r := &Runner{options: o}
	r.layout = ring.NewLayout([]ring.Tensor{
		{Name: o.Data, DType: manifest.F32, Shape: append([]int{maxRows}, o.Shape...), Pad: Pad},
		{Name: o.Lengths, DType: manifest.I32, Shape: []int{maxRows}},
	}, nil)
	var err error
	if r.memory, err = ring.Create(1, r.layout.Size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.memory.Close() })
	plugin := stage.Plugin{
		ID: "test", Version: "1", Stages: map[string]func() stage.Stage{"test": func() stage.Stage { return s }},
	}
	if r.server, err = stage.NewServer(plugin, r.memory.File(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.server.Close() })
	if _, err := r.server.Configure(t.Context(), r.request(t)); err != nil {
		return nil, err
	}
	if _, err := r.server.Attach(t.Context(), &stagepb.AttachRequest{
		Slots: 1, SlotSize: uint64(r.memory.SlotSize()),
	}); err != nil {
		t.Fatal(err)
	}
	return r, nil
}

func (r *Runner) request(t testing.TB) *stagepb.ConfigureRequest {
	o := r.options
	layout := &stagepb.Layout{}
	for _, x := range r.layout.Tensors {
		p := &stagepb.Tensor{Name: x.Name, Dtype: string(x.DType), Pad: x.Pad, Offset: uint64(x.Offset)}
		for _, d := range x.Shape {
			p.Shape = append(p.Shape, uint64(d))
		}
		layout.Tensors = append(layout.Tensors, p)
	}
	in := &stagepb.Instance{
		Name: "test", Stage: "test", ConfigJson: o.Config, Data: folders(t, o.Folders),
		Inputs:  map[string]string{o.Data: o.Data, o.Lengths: o.Lengths},
		Outputs: map[string]string{o.Data: o.Data},
	}
	if o.Resizes {
		in.Outputs[o.Lengths] = o.Lengths
	}
	features, err := json.Marshal(manifest.Features{SampleRate: o.Rate})
	if err != nil {
		t.Fatal(err)
	}
	return &stagepb.ConfigureRequest{
		DeviceUuid: o.Device, Layouts: []*stagepb.Layout{layout}, Instances: []*stagepb.Instance{in},
		FeaturesJson: string(features),
	}
}

// folders lists the files directly in each folder, in the order of their names.
func folders(t testing.TB, paths map[string]string) map[string]*stagepb.DataFolder {
	all := map[string]*stagepb.DataFolder{}
	for name, path := range paths {
		all[name] = &stagepb.DataFolder{Path: path}
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all[name].Files = append(all[name].Files, &stagepb.DataFile{Name: e.Name()})
		}
	}
	return all
}

// Process sends the rows as one batch and returns each processed row with its padding. A rejected row or a failed call
// is an error.
func (r *Runner) Process(t testing.TB, rows []Row) ([][]float32, error) {
	t.Helper()
	if len(rows) > maxRows {
		t.Fatalf("%d rows: a batch has at most %d", len(rows), maxRows)
	}
	slot := r.memory.Slot(0)
	data := view[float32](r.layout.View(slot, r.options.Data))
	lengths := view[int32](r.layout.View(slot, r.options.Lengths))
	width, step := len(data)/maxRows, 1
	if len(r.options.Shape) > 1 {
		step = r.options.Shape[1]
	}
	for i := range data {
		data[i] = Pad
	}
	clear(lengths)
	keys := make([]byte, maxRows*stage.KeySize)
	for i, row := range rows {
		copy(data[i*width:(i+1)*width], row.Data)
		lengths[i] = int32(len(row.Data) / step)
		copy(keys[i*stage.KeySize:], row.Key[:])
	}
	res := batchtest.Call(t, r.server, keys)
	if res.Error != "" || len(res.BadRows) > 0 {
		return nil, fmt.Errorf("%s%v", res.Error, res.BadRows)
	}
	r.Draws = map[int]string{}
	for _, d := range res.Draws {
		r.Draws[int(d.Row)] = d.Json
	}
	out := make([][]float32, len(rows))
	r.Lengths = nil
	for i := range rows {
		r.Lengths = append(r.Lengths, int(lengths[i]))
		out[i] = slices.Clone(data[i*width : (i+1)*width])
	}
	return out, nil
}

func view[T float32 | int32](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
