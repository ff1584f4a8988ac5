package frozen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/plugins/internal/batchtest"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage/gpustagetest"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

func TestMain(m *testing.M) { os.Exit(gpustagetest.Run(m)) }

// port is a stage of plugin.json.
type port struct {
	output, lengths string
	dtype           manifest.DType
	pad             float64
	element         []int
}

var (
	codesPort = port{"codes", "code_lengths", manifest.I32, 7, nil}
)

// runner configures a stage for batches of that many rows, on a GPU or on the CPU.
func (p port) runner(
	t testing.TB, open gpustage.Opener, device, config string, files map[string]string, rows, samples, elements int,
) (*batchtest.Runner, error) {
	t.Helper()
	s := New(p.output, p.lengths, p.dtype, open)
	r, err := batchtest.New(t, s, batchtest.Options{
		Config: config, Files: files, Device: device,
		Inputs: []ring.Tensor{
			{Name: waveform, DType: manifest.F32, Shape: []int{rows, samples}},
			{Name: waveformLengths, DType: manifest.I32, Shape: []int{rows}},
		},
		Outputs: []ring.Tensor{
			{Name: p.output, DType: p.dtype, Shape: slices.Concat([]int{rows, elements}, p.element), Pad: p.pad},
			{Name: p.lengths, DType: manifest.I32, Shape: []int{rows}},
		},
	})
	if err != nil {
		err = errors.Join(err, s.Close())
	}
	return r, err
}

// both configures a stage on the CPU and on the test's GPU.
func (p port) both(
	t testing.TB, config string, files map[string]string, rows, samples, elements int,
) [2]*batchtest.Runner {
	t.Helper()
	open, device := gpustagetest.Open(t)
	var runners [2]*batchtest.Runner
	for i, where := range []string{"", device} {
		var err error
		if runners[i], err = p.runner(t, open, where, config, files, rows, samples, elements); err != nil {
			t.Fatal(err)
		}
	}
	return runners
}

// TestGPUAgreesWithCPU compares both devices for rows of every kind: of each width, as long as a width and one sample
// longer, empty ones and rejected ones.
func TestGPUAgreesWithCPU(t *testing.T) {
	const samples, elements = 20001, 5001
	lengths := []int32{20001, 0, 1, 3, 4, narrowest - 1, narrowest, narrowest + 1, 10240, 10241, 20000, 16001, 9, 12}
	var kept [2][]int32
	var counts [2][]int32
	var reasons [2]string
	for i, r := range codesPort.both(t, both, write(t, func(*onnxpb.GraphProto) {}), len(lengths), samples, elements) {
		for round := range 2 { // in the second, the lanes hold what the first has left
			wave := r.Float32(waveform)
			for k := range wave { // the content after a row's length is undefined
				wave[k] = float32(math.NaN())
			}
			random := rand.New(rand.NewPCG(1, 2))
			for row, n := range lengths {
				for k := range n {
					wave[row*samples+int(k)] = 2*random.Float32() - 1
				}
			}
			wave[12*samples+5], wave[13*samples] = float32(math.Inf(1)), float32(math.NaN())
			copy(r.Int32(waveformLengths), lengths)
			res := r.Process(t)
			if res.Error != "" {
				t.Fatal(res.Error)
			}
			out := slices.Clone(r.Int32("codes"))
			if round == 1 && !slices.Equal(out, kept[i]) {
				t.Error("the second batch is not the first, of the same rows")
			}
			kept[i], counts[i], reasons[i] = out, slices.Clone(r.Int32("code_lengths")), fmt.Sprint(res.BadRows)
		}
	}
	if !slices.Equal(counts[0], counts[1]) || reasons[0] != reasons[1] || !slices.Equal(kept[0], kept[1]) {
		t.Errorf("lengths %v on the CPU, %v on the GPU; rejected %v and %v; codes are equal: %v", counts[0], counts[1],
			reasons[0], reasons[1], slices.Equal(kept[0], kept[1]))
	}
	want := []int32{5001, 0, 1, 1, 1, 2048, 2048, 2049, 2560, 2561, 5000, 4001, 0, 0}
	if !slices.Equal(counts[1], want) {
		t.Errorf("lengths %v, want %v", counts[1], want)
	}
}

func TestStageConformsOnGPU(t *testing.T) {
	open, device := gpustagetest.Open(t)
	stagetest.Run(t, func() stage.Stage { return New("codes", "code_lengths", manifest.I32, open) }, stagetest.Options{
		Manifest: "../plugin.json", Stage: "codes", Config: both, Files: write(t, func(*onnxpb.GraphProto) {}),
		Device: device, Buckets: []manifest.Bucket{{"T_wav": 41, "T_code": 11}, {"T_wav": 9000, "T_code": 2250}},
	})
}

func TestConditioningConformsOnGPU(t *testing.T) {
	open, device := gpustagetest.Open(t)
	stagetest.Run(t, func() stage.Stage { return New("conditioning_mel", "conditioning_lengths", manifest.F32, open) },
		stagetest.Options{
			Manifest: "../plugin.json", Stage: "conditioning", Config: both, Files: write(t, conditioning),
			Device: device, Buckets: []manifest.Bucket{{"T_wav": 41, "T_cond": 11, "n_mels": 1}},
		})
}

func TestGPURefuses(t *testing.T) {
	for want, change := range map[string]func(*onnxpb.GraphProto){
		"graph g on the GPU: ": func(g *onnxpb.GraphProto) { // more elements than it counts
			g.Initializer[3].Int64Data[0] = every / 2
		},
		"the graph has i64": func(g *onnxpb.GraphProto) {
			g.Node[2].Attribute[0].I = proto.Int64(int64(onnxpb.TensorProto_INT64))
			g.Output[0].Type.GetTensorType().ElemType = proto.Int32(int32(onnxpb.TensorProto_INT64))
		},
		"open g.onnx: ": func(g *onnxpb.GraphProto) { g.Node[1].OpType = proto.String("Multiply") },
		"g.onnx takes gain, which is neither waveform, waveform_lengths nor a tensor of its weights": func(
			g *onnxpb.GraphProto,
		) {
			g.Input[2].Name, g.Node[1].Input[1] = proto.String("gain"), "gain"
		},
	} {
		open, device := gpustagetest.Open(t)
		_, err := codesPort.runner(t, open, device, both, write(t, change), 2, 41, 11)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := codesPort.runner(t, nil, "GPU-0", both, write(t, func(*onnxpb.GraphProto) {}), 2, 41, 11)
	if want := "was given GPU-0 but cannot open a GPU"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestWidths: each width is twice the next, and the widest has room for the longest row.
func TestWidths(t *testing.T) {
	if got, want := widths(1), []int{narrowest}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	list := widths(617000)
	if len(list) > 8 || list[0] < 617000 || !slices.Equal(list[1:], widths(list[1])) {
		t.Error(list)
	}
	for i, w := range list[1:] {
		if list[i] != 2*w {
			t.Error(list)
		}
	}
	c := &card{}
	for _, w := range widths(20000) {
		c.buckets = append(c.buckets, gpustage.Bucket{
			Inputs:  []gpustage.Tensor{{Name: waveform, Row: []int{w}}},
			Outputs: []gpustage.Tensor{{Row: []int{w / 1000}}},
		})
	}
	for _, x := range []struct{ samples, elements, want int }{
		{1, 1, 2}, {8192, 8, 2}, {8192, 9, 1}, {8193, 1, 1}, {16385, 1, 0}, {16385, 33, -1}, {32769, 1, -1},
	} {
		if got := c.bucketOf(x.samples, x.elements); got != x.want {
			t.Errorf("%d samples, %d elements: bucket %d, want %d", x.samples, x.elements, got, x.want)
		}
	}
}

// bundleVariable names a bundle of XTTS v2 whose graphs the test of the bundle, and the benchmark, compute.
const bundleVariable = "XTTS_HOST_TEST_XTTS_BUNDLE"

// bundle returns the files of that bundle, and the configuration of a stage.
func bundle(t testing.TB, graph string) (files map[string]string, config string) {
	t.Helper()
	folder := os.Getenv(bundleVariable)
	if folder == "" {
		t.Skipf("%s names no bundle", bundleVariable)
	}
	files = map[string]string{}
	for _, name := range []string{graph + ".onnx", graph + ".safetensors"} {
		files[name] = filepath.Join(folder, name)
	}
	text, err := json.Marshal(map[string]string{"graph": graph + ".onnx", "weights": graph + ".safetensors"})
	if err != nil {
		t.Fatal(err)
	}
	return files, string(text)
}

// The stages of XTTS v2, and batches of them.
const rate, longest = 22050, 11 * 22050

var xtts = map[string]struct {
	port
	elements int // of the longest row
}{
	"codes": {codesPort, (longest + 1023) / 1024},
	"conditioning_mel": {
		port{"conditioning_mel", "conditioning_lengths", manifest.F32, -1, []int{80}}, 1 + longest/256,
	},
}

// fill writes rows of voices: harmonics of a pitch that changes, and noise, from a second to the longest.
func fill(r *batchtest.Runner, rows int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for row := range rows {
		n := rate + (longest-rate)*row/max(1, rows-1)
		r.Int32(waveformLengths)[row] = int32(n)
		wave := r.Float32(waveform)[row*longest:][:n]
		pitch, phase := 80+200*random.Float64(), 0.0
		for i := range wave {
			if i%2048 == 0 {
				pitch *= 0.8 + 0.4*random.Float64()
				pitch = min(max(pitch, 70), 400)
			}
			phase += 2 * math.Pi * pitch / rate
			x := 0.02 * random.NormFloat64()
			for k := 1.0; k <= 12; k++ {
				x += 0.2 / k * math.Sin(k*phase)
			}
			wave[i] = float32(x * (0.2 + 0.8*math.Abs(math.Sin(float64(i)/9000))))
		}
	}
}

// TestGPUWithBundle compares both devices on the graphs of a bundle: at least 99.9 % of the codes are equal,
// spectrograms are close, and a batch has the same bits again.
func TestGPUWithBundle(t *testing.T) {
	const rows = 8
	for name, x := range xtts {
		t.Run(name, func(t *testing.T) {
			files, config := bundle(t, name)
			runners := x.both(t, config, files, rows, longest, x.elements)
			different, all, worst, seen := 0, 0, 0.0, map[int32]bool{}
			for seed := range uint64(4) {
				var again []byte
				for _, r := range []*batchtest.Runner{runners[0], runners[1], runners[1]} {
					fill(r, rows, seed)
					if res := r.Process(t); res.Error != "" || len(res.BadRows) > 0 {
						t.Fatal(res)
					}
					if r == runners[1] {
						bits := bitsOf(r.Int32(x.output))
						if again != nil && !bytes.Equal(again, bits) {
							t.Error("a batch has other bits the second time")
						}
						again = bits
					}
				}
				cpu, gpu := runners[0], runners[1]
				if a, b := cpu.Int32(x.lengths), gpu.Int32(x.lengths); !slices.Equal(a, b) {
					t.Fatalf("lengths %v on the CPU, %v on the GPU", a, b)
				}
				if x.dtype == manifest.F32 {
					for i, v := range cpu.Float32(x.output) {
						worst = max(worst, math.Abs(float64(v-gpu.Float32(x.output)[i])))
					}
					continue
				}
				for row, n := range cpu.Int32(x.lengths) {
					for i := range int(n) {
						a, b := cpu.Int32(x.output)[row*x.elements+i], gpu.Int32(x.output)[row*x.elements+i]
						seen[a] = true
						if all++; a != b {
							different++
						}
					}
				}
			}
			t.Logf("%d of %d codes differ (%d different ones); values are up to %.3g apart", different, all, len(seen),
				worst)
			if different*1000 > all || worst > 1e-4 {
				t.Error("the devices differ")
			}
		})
	}
}

// bitsOf copies the bits of 4-byte elements.
func bitsOf(elements []int32) []byte {
	var b bytes.Buffer
	for _, e := range elements {
		fmt.Fprintf(&b, "%08x", uint32(e))
	}
	return b.Bytes()
}

// BenchmarkGPU processes batches of 16 rows, of one to eleven seconds, on both devices.
func BenchmarkGPU(b *testing.B) {
	const rows = 16
	for _, name := range []string{"codes", "conditioning_mel"} {
		for _, on := range []string{"cpu", "gpu"} {
			b.Run(name+"/"+on, func(b *testing.B) {
				x := xtts[name]
				files, config := bundle(b, name)
				open, where := gpustagetest.Open(b)
				if on == "cpu" {
					where = ""
				}
				r, err := x.runner(b, open, where, config, files, rows, longest, x.elements)
				if err != nil {
					b.Fatal(err)
				}
				fill(r, rows, 1)
				for b.Loop() {
					if res := r.Process(b); res.Error != "" {
						b.Fatal(res.Error)
					}
				}
			})
		}
	}
}
