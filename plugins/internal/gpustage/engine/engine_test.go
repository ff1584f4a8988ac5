package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage/engine"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

const masks = "../../../augment/specaugment/specaugment.onnx"

// masking is the smallest of the stages' graphs, for rows of frames by 3 bands; the pad value is -1.
func masking(t *testing.T, rows, together int, frames ...int) gpustage.Graph {
	t.Helper()
	model, err := os.ReadFile(masks)
	if err != nil {
		t.Fatal(err)
	}
	g := gpustage.Graph{Name: "masks", Model: model, Tables: []gpustage.Table{gpustage.NewTable("pad", []float32{-1})}}
	for _, n := range frames {
		g.Buckets = append(g.Buckets, gpustage.Bucket{
			Rows: rows, Together: together,
			Inputs: []gpustage.Tensor{
				{Name: "mel_spectrograms", DType: manifest.F32, Row: []int{n, 3}},
				{Name: "valid", DType: manifest.Bool, Row: []int{n, 1}, Own: true},
				{Name: "masked_frames", DType: manifest.Bool, Row: []int{n, 1}, Own: true},
				{Name: "masked_bands", DType: manifest.Bool, Row: []int{1, 3}, Own: true},
			},
			Outputs: []gpustage.Tensor{{Name: "masked", DType: manifest.F32, Row: []int{n, 3}}},
		})
	}
	return g
}

// shared returns mapped memory, like a ring.
func shared(t *testing.T, size int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return mem
}

func newDevice(t *testing.T, limit int) (*engine.Device, *gputest.Context) {
	t.Helper()
	card := gputest.New(gputest.Config{Memory: 1 << 20, Misuse: func(err error) { t.Error(err) }})
	d, err := engine.New(engine.Config{Context: card, OnHost: true, MemoryLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return d, card
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestManyCalls has more batches of all shapes in flight than there are lanes, in parts of two rows, from two programs.
func TestManyCalls(t *testing.T) {
	const rows, callers = 5, 8
	d, _ := newDevice(t, 0)
	frames := []int{4, 7}
	var programs []gpustage.Program
	for range 2 {
		p, err := d.Load(masking(t, rows, 2, frames...))
		check(t, err)
		programs = append(programs, p)
	}
	const slot = 1 << 10
	ring := shared(t, callers*slot)
	check(t, d.Pin(ring))
	check(t, d.Pin(ring))
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			bucket := i / 2 % 2
			n := frames[bucket]
			mem := ring[i*slot : i*slot+rows*n*3*4]
			mel := gpustage.View[float32](mem)
			for round := range 5 {
				for k := range mel {
					mel[k] = float32(round + i)
				}
				call, err := programs[i%2].Begin(t.Context(), bucket)
				if err != nil {
					t.Error(err)
					return
				}
				valid, bands, times := gpustage.View[bool](call.Host("valid")),
					gpustage.View[bool](call.Host("masked_bands")), gpustage.View[bool](call.Host("masked_frames"))
				clear(valid)
				clear(bands)
				clear(times)
				want := slices.Clone(mel)
				times[(rows-1)*n+n-1] = true // the last frame of the last row
				copy(want[len(want)-3:], []float32{-1, -1, -1})
				valid[0], bands[1] = true, true // a band of the first row, of which one frame is valid
				want[1] = -1
				err = call.Run(gpustage.Bytes{"mel_spectrograms": mem}, gpustage.Bytes{"masked": mem})
				call.End()
				if err != nil || !slices.Equal(mel, want) {
					t.Errorf("%v: got %v, want %v", err, mel, want)
					return
				}
			}
		})
	}
	wg.Wait()
	check(t, errors.Join(programs[0].Close(), programs[0].Close(), programs[1].Close(), d.Close(), d.Close()))
	if err := d.Pin(ring); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("pin after Close: %v", err)
	}
}

// TestBegin: Begin waits for a lane until the caller's context ends.
func TestBegin(t *testing.T) {
	d, _ := newDevice(t, 0)
	defer d.Close()
	p, err := d.Load(masking(t, 1, 0, 4))
	check(t, err)
	defer p.Close()
	var calls []gpustage.Call
	for range gpustage.Lanes {
		call, err := p.Begin(t.Context(), 0)
		check(t, err)
		calls = append(calls, call)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := p.Begin(ctx, 0)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, call := range calls {
		call.End()
		call.End()
	}
}

// TestRefusals loads invalid graphs and passes invalid tensors.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  int
		change func(*gpustage.Graph)
		want   string
		hint   bool
	}{
		{"limit", 920<<20 + 1000, func(*gpustage.Graph) {}, "may use 920 MB of the data GPU but needs", true},
		{"card", 0, func(g *gpustage.Graph) { g.Buckets[0].Rows = 20000 }, "out of GPU memory", true},
		{"missing input", 0, func(g *gpustage.Graph) { g.Tables = nil }, "pad", false},
		{
			"unknown input", 0, func(g *gpustage.Graph) { g.Buckets[0].Inputs[1].Name = "other" },
			"the graph has no such name", false,
		},
		{
			"other type", 0, func(g *gpustage.Graph) { g.Buckets[0].Outputs[0].DType = manifest.F64 },
			"the tensor is f64", false,
		},
		{"no model", 0, func(g *gpustage.Graph) { g.Model = []byte("?") }, "open masks.onnx", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := newDevice(t, c.limit)
			g := masking(t, 2, 0, 4)
			c.change(&g)
			_, err := d.Load(g)
			if err == nil || !strings.HasPrefix(err.Error(), "graph masks on the GPU: ") ||
				!strings.Contains(err.Error(), c.want) || (hint.Of(err) != "") != c.hint {
				t.Errorf("got %v (hint %q), want %q", err, hint.Of(err), c.want)
			}
			check(t, d.Close())
		})
	}
	d, _ := newDevice(t, 0)
	p, err := d.Load(masking(t, 2, 0, 4))
	check(t, err)
	call, err := p.Begin(t.Context(), 0)
	check(t, err)
	if err := call.Run(
		gpustage.Bytes{"mel_spectrograms": make([]byte, 95)}, nil,
	); err == nil || !strings.Contains(err.Error(), "mel_spectrograms has 95 bytes, want 96") {
		t.Errorf("got %v", err)
	}
	check(t, errors.Join(p.Close(), d.Close()))
}

// TestPartsOfOneFile: two programs of one name have sessions of their own if their models differ, and rows of their own
// in the trial runs.
func TestPartsOfOneFile(t *testing.T) {
	d, _ := newDevice(t, 0)
	var programs []gpustage.Program
	for _, output := range []string{"masked", "hidden"} {
		g := masking(t, 3, 2, 4)
		model, err := ortgraphs.ReadModel(masks)
		check(t, err)
		for _, n := range model.Graph.Node {
			for i, name := range n.Output {
				if name == "masked" {
					n.Output[i] = output
				}
			}
		}
		model.Graph.Output[0].Name, g.Buckets[0].Outputs[0].Name = &output, output
		g.Model, err = proto.Marshal(model)
		check(t, err)
		g.OnCPU, g.Buckets[0].Inputs[1].Trial = true, []byte{1, 0, 1, 0}
		before, err := d.Used()
		check(t, err)
		p, err := d.Load(g)
		check(t, err)
		if after, err := d.Used(); err != nil || after <= before {
			t.Errorf("%d bytes used before and %d after a graph was loaded: %v", before, after, err)
		}
		programs = append(programs, p)
	}
	check(t, errors.Join(programs[0].Close(), programs[1].Close(), d.Close()))
}

// TestFailures makes each kind of GPU work fail: the call returns the error, and everything can be closed.
func TestFailures(t *testing.T) {
	broken := errors.New("the card is gone")
	for _, op := range []gputest.Op{gputest.Upload, gputest.Download} {
		card := gputest.New(gputest.Config{Misuse: func(err error) { t.Error(err) }})
		var lost []error
		d, err := engine.New(
			engine.Config{Context: card, OnHost: true, Lost: func(err error) { lost = append(lost, err) }})
		check(t, err)
		p, err := d.Load(masking(t, 2, 0, 4))
		check(t, err)
		mem := shared(t, 96)
		check(t, d.Pin(mem))
		call, err := p.Begin(t.Context(), 0)
		check(t, err)
		card.Fail(op, 1, broken)
		if err := call.Run(
			gpustage.Bytes{"mel_spectrograms": mem}, gpustage.Bytes{"masked": mem},
		); !errors.Is(err, broken) {
			t.Errorf("%s: %v", op, err)
		}
		if len(lost) != 1 || !errors.Is(lost[0], broken) {
			t.Errorf("%s: Lost got %v", op, lost)
		}
		call.End()
		errors.Join(p.Close(), d.Close()) // after the GPU is lost, errors have little detail
	}
	for _, op := range []gputest.Op{gputest.Allocate, gputest.AllocateHost} {
		d, card := newDevice(t, 0)
		card.Fail(op, 2, broken)
		if _, err := d.Load(masking(t, 2, 0, 4)); !errors.Is(err, broken) {
			t.Errorf("%s: %v", op, err)
		}
		d.Close()
	}
}

// TestGraphsRunOnCUDA finds nodes without a GPU kernel and nodes that make the host wait, which a fake cannot show.
func TestGraphsRunOnCUDA(t *testing.T) {
	files, err := filepath.Glob("../../../*/*/*.onnx")
	if err != nil || len(files) != 4 {
		t.Fatalf("graphs %v, %v", files, err)
	}
	var trials []shapes.Sizes
	for _, frames := range []int{7, 20} {
		trials = append(trials, shapes.Sizes{
			"B": 3, "T_wav": 64 * frames, "T_mel": frames, "P": 64*frames + 256, "L": 256, "K": 128, "n_mels": 20,
		})
	}
	for _, file := range files {
		model, err := ortgraphs.ReadModel(file)
		check(t, err)
		for _, f := range lint.Check(model, trials) {
			t.Errorf("%s: %s", filepath.Base(file), f)
		}
	}
}
