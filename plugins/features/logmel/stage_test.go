package logmel

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"google.golang.org/grpc"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

func base() manifest.Features {
	return manifest.Features{SampleRate: 22050, NFFT: 1024, WinLength: 1024, HopLength: 256, Window: "hann", Center: true, PadMode: "constant",
		Power: 1, NMels: 80, MelScale: "slaney", MelNorm: "slaney", FMax: 11025, Log: "ln", LogFloor: 1e-5}
}

func TestStageConforms(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return new(Stage) }, stagetest.Options{
		Manifest: "../plugin.json",
		Stage:    "logmel",
		Features: base(),
		Buckets: []manifest.Bucket{
			{"T_wav": 2000, "T_mel": 8, "n_mels": 80},
			{"T_wav": 8191, "T_mel": 32, "n_mels": 80},
			{"T_wav": 9000, "T_mel": 50, "n_mels": 80},
		},
	})
}

// request configures one instance, with the tensors named as the ports.
func request(t *testing.T, f manifest.Features, samples, frames, bands int) (*stagepb.ConfigureRequest, ring.Layout) {
	t.Helper()
	const rows = 3
	l := ring.NewLayout([]ring.Tensor{
		{Name: waveform, DType: manifest.F32, Shape: []int{rows, samples}},
		{Name: waveformLengths, DType: manifest.I32, Shape: []int{rows}},
		{Name: melSpectrograms, DType: manifest.F32, Shape: []int{rows, frames, bands}, Pad: -3},
		{Name: melLengths, DType: manifest.I32, Shape: []int{rows}},
	}, nil)
	features, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	req := &stagepb.ConfigureRequest{
		FeaturesJson: string(features),
		Layouts:      []*stagepb.Layout{{}},
		Instances: []*stagepb.Instance{{Name: "target", Stage: "logmel",
			Inputs:  map[string]string{waveform: waveform, waveformLengths: waveformLengths},
			Outputs: map[string]string{melSpectrograms: melSpectrograms, melLengths: melLengths}}},
	}
	for _, x := range l.Tensors {
		p := &stagepb.Tensor{Name: x.Name, Dtype: string(x.DType), Pad: x.Pad, Offset: uint64(x.Offset)}
		for _, d := range x.Shape {
			p.Shape = append(p.Shape, uint64(d))
		}
		req.Layouts[0].Tensors = append(req.Layouts[0].Tensors, p)
	}
	return req, l
}

func server(t *testing.T, memory *os.File) *stage.Server {
	t.Helper()
	s, err := stage.NewServer(stage.Plugin{ID: "features", Version: "1", Stages: map[string]func() stage.Stage{
		"logmel": func() stage.Stage { return new(Stage) },
	}}, memory, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStageRefuses(t *testing.T) {
	for _, c := range []struct {
		name                   string
		change                 func(*manifest.Features)
		samples, frames, bands int
		want                   string
	}{
		{"too few frames", nil, 44032, 172, 80, "bucket 0: mel_spectrograms has room for 172 frames, but 44032 samples make 173\nhint: give the bucket at least 173 frames"},
		{"other bands", nil, 2560, 11, 100, "bucket 0: mel_spectrograms has 100 bands, the feature contract n_mels = 80"},
		{"contract", func(f *manifest.Features) { f.FMax = 12000 }, 2560, 11, 80, "f_max 12000 Hz is above 11025 Hz"},
		{"silent band", func(f *manifest.Features) { f.NMels = 400 }, 2560, 11, 400, "holds no FFT bin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := base()
			if c.change != nil {
				c.change(&f)
			}
			req, _ := request(t, f, c.samples, c.frames, c.bands)
			_, err := server(t, nil).Configure(t.Context(), req)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// calls is a stream that holds calls and takes results.
type calls struct {
	grpc.ServerStream
	ctx     context.Context
	waiting []*stagepb.Call
	results []*stagepb.Result
}

func (c *calls) Context() context.Context { return c.ctx }
func (c *calls) Recv() (*stagepb.Call, error) {
	if len(c.waiting) == 0 {
		return nil, io.EOF
	}
	call := c.waiting[0]
	c.waiting = c.waiting[1:]
	return call, nil
}
func (c *calls) Send(r *stagepb.Result) error {
	c.results = append(c.results, r)
	return nil
}

// TestStageRows processes a good, an empty and a bad row, with one worker and with several: the bits are the same.
func TestStageRows(t *testing.T) {
	const samples, frames = 3000, 20
	req, l := request(t, base(), samples, frames, 80)
	process := func(workers int) ([]float32, []int32, *stagepb.Result) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		r, err := ring.Create(1, l.Size)
		if err != nil {
			t.Fatal(err)
		}
		s := server(t, r.File())
		defer r.Close()
		floats := func(name string) []float32 {
			b := l.View(r.Slot(0), name)
			return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
		}
		ints := func(name string) []int32 {
			b := l.View(r.Slot(0), name)
			return unsafe.Slice((*int32)(unsafe.Pointer(&b[0])), len(b)/4)
		}
		copy(floats(waveform), signal(2500))
		copy(floats(waveform)[2*samples:], signal(100))
		floats(waveform)[2*samples+42] = float32(math.Inf(1))
		copy(ints(waveformLengths), []int32{2500, 0, 100})
		if _, err := s.Configure(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Attach(t.Context(), &stagepb.AttachRequest{Slots: 1, SlotSize: uint64(r.SlotSize())}); err != nil {
			t.Fatal(err)
		}
		stream := &calls{ctx: t.Context(), waiting: []*stagepb.Call{{RowKeys: make([]byte, 3*stage.KeySize)}}}
		if err := s.Process(stream); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(floats(melSpectrograms)), slices.Clone(ints(melLengths)), stream.results[0]
	}
	mel, lengths, res := process(1)
	if want := []int32{10, 0, 0}; !slices.Equal(lengths, want) {
		t.Errorf("mel_lengths %v, want %v", lengths, want)
	}
	if len(res.BadRows) != 1 || res.BadRows[0].Row != 2 || res.BadRows[0].Reason != "sample 42 is +Inf" || res.Error != "" {
		t.Errorf("result %v", res)
	}
	e, err := New(base())
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 3*frames*80)
	for i := range want {
		want[i] = -3
	}
	if err := e.Compute(want, signal(2500)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(mel, want) {
		t.Error("the rows are not the extractor's with padding")
	}
	if many, _, _ := process(4); !slices.Equal(mel, many) {
		t.Error("four workers gave other bits than one")
	}
}
