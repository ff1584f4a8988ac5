package cudac

import (
	_ "embed"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

//go:embed depthwise.cuh
var depthwiseTemplates string

const (
	// longestRun is the number of positions that a thread computes: more need fewer reads for each, and leave fewer
	// threads to wait for them.
	longestRun = 8
	// depthwisePerProcessor is how many blocks run on a multiprocessor: so a thread has 128 registers.
	depthwisePerProcessor = 2
	// sharedWeights limits what a block keeps of the weights, in floats: what a program may declare.
	sharedWeights = 48 << 10 / 4
)

// depthwise is the program of a depthwise convolution in the making.
type depthwise struct {
	*fuse.Depthwise
	*body
	vector, lanes int // channels of a thread, and threads that have neighbouring channels
	// A line is divided into residues, by the distance of two taps, and these into runs of positions.
	residues, runs, run int
}

// newDepthwise writes the program of a depthwise convolution, or of the gradient of its weights.
func newDepthwise(r *fuse.Region, d *fuse.Depthwise) (*Kernel, error) {
	for _, t := range d.In {
		if !isFloat(t.Type) {
			return nil, unsupported("%s is of type %s", t.Name, t.Type)
		}
	}
	k := &depthwise{Depthwise: d, vector: 1}
	if d.Channels%2 == 0 {
		k.vector = 2
	}
	k.lanes = min(warp, d.Channels/k.vector)
	if d.OfWeights {
		return newTapGradient(k).kernel(r), nil
	}
	k.residues = min(d.Distance[1], d.ResultSize[1])
	length := ceil(d.ResultSize[1], k.residues)
	k.runs = ceil(length, longestRun)
	k.run = ceil(length, k.runs)
	if d.Taps()*k.width() > sharedWeights {
		return nil, unsupported("%d taps", d.Taps())
	}
	return k.sums(r)
}

// width is the number of floats in a row of the weights in shared memory. It is no multiple of the number of banks, for
// rows are written along the taps.
func (k *depthwise) width() int { return k.lanes*k.vector + 2 }

// sums writes the program of a sum of taps, and of what is computed from it.
func (k *depthwise) sums(r *fuse.Region) (*Kernel, error) {
	tail := &fuse.Region{Nodes: k.Tail, In: r.In, Out: r.Out}
	loops := tail.Loops()
	if len(loops.Row)+len(loops.Columns)+len(loops.Along) > 0 {
		return nil, unsupported("its sum is reduced, or added up")
	}
	s := shape{sizes: loops.Sizes, V: k.vector, C: 1}
	for i := len(s.sizes) - 1; i >= 0; i-- {
		if s.C < k.Channels {
			s.cols = slices.Insert(s.cols, 0, i)
			s.C *= s.sizes[i]
		} else {
			s.rows = slices.Insert(s.rows, 0, i)
		}
	}
	if s.R = s.places(s.rows); s.C != k.Channels || s.R*s.C != product(r.Domain) ||
		s.sizes[len(s.sizes)-1]%k.vector != 0 {
		return nil, unsupported("the places %v do not have %d channels", s.sizes, k.Channels)
	}
	k.body = emptyBody(tail, loops, s)
	for _, t := range k.In {
		k.input(t)
	}
	k.values[k.Sum] = value{code: "sum[i][jj]", vector: true}
	if err := k.fill(); err != nil {
		return nil, err
	}
	if len(k.phases) > 1 {
		return nil, unsupported("it uses a reduction of rows")
	}
	if err := k.readsInputs(); err != nil {
		return nil, err
	}
	down := blockThreads / k.lanes
	blocks := [2]int{
		ceil(k.Rows*k.ResultSize[0]*k.residues*k.runs, down), ceil(k.Channels/k.vector, k.lanes),
	}
	w := &writer{}
	w.WriteString(depthwiseTemplates)
	w.begin(k.body, k.lanes*down, depthwisePerProcessor)
	k.takeWeights(w)
	k.addTaps(w, down)
	k.tail(w)
	w.line("}")
	out := k.kernel(w, blocks, k.lanes*down)
	k.meterReads(&out.Caches, down)
	return out, nil
}

// takeWeights writes how a block reads its weights, by which neighbouring threads read neighbours in memory.
func (k *depthwise) takeWeights(w *writer) {
	channels, taps := k.lanes*k.vector, k.Taps()
	w.line("constexpr int NV = %d;", k.vector)
	w.line("__shared__ vec<float, %d> shared[%d];", k.vector, taps*k.width()/k.vector)
	w.line("float *const weights = (float *)shared;")
	w.line("for (int i = threadIdx.x; i < %d; i += blockDim.x) {", taps*channels)
	if k.Steps[2] == 1 {
		w.line("const int tap = i / %d, own = i %% %d, c = blockIdx.y * %d + own;", channels, channels, channels)
	} else {
		w.line("const int own = i / %d, tap = i %% %d, c = blockIdx.y * %d + own;", taps, taps, channels)
	}
	w.line("if (c < %d) weights[tap * %d + own] = p1[%d + tap / %d * %d + tap %% %d * %d + c * %d];", k.Channels,
		k.width(), k.First, k.Kernel[1], k.Steps[0], k.Kernel[1], k.Steps[1], k.Steps[2])
	w.line("}")
	w.line("__syncthreads();")
}

// addTaps writes how a thread adds up the taps of its run.
func (k *depthwise) addTaps(w *writer, down int) {
	w.line("const int across = threadIdx.x %% %d, c0 = (blockIdx.y * %d + across) * %d;", k.lanes, k.lanes, k.vector)
	w.line("const int number = blockIdx.x * %d + threadIdx.x / %d;", down, k.lanes)
	w.line("if (c0 >= %d || number >= %d) return;", k.Channels, k.Rows*k.ResultSize[0]*k.residues*k.runs)
	w.line("const int line = number / %d;", k.runs*k.residues)
	w.line("const int begin = number %% %d * %d + number / %d %% %d;", k.runs, k.run*k.residues, k.runs, k.residues)
	w.line("const bool first = across == 0 && blockIdx.y == 0, live = true;")
	w.line("float sum[%d][%d];", k.run, k.vector)
	w.line("#pragma unroll")
	w.line("for (int i = 0; i < %d; i++)", k.run)
	w.line("\tfor (int v = 0; v < %d; v++) sum[i][v] = 0;", k.vector)
	w.line("for (int tap = 0; tap < %d; tap++) {", k.Kernel[0])
	w.line("const int at = line %% %d + (%d) + tap * %d;", k.ResultSize[0], k.Start[0], k.Distance[0])
	w.line("if (at >= 0 && at < %d)", k.Size[0])
	w.line("\tadd_taps<%d, %d, %d, %d, %d>(sum, p0 + (line / %d * %d + at) * %d + c0, begin + (%d),", k.Kernel[1],
		k.Distance[1], k.Size[1], k.Channels, k.width(), k.ResultSize[0], k.Size[0], k.Size[1]*k.Channels, k.Start[1])
	w.line("\t\tweights + tap * %d + across * %d);", k.Kernel[1]*k.width(), k.vector)
	w.line("}")
}

// tail writes what is computed from the sums of a run.
func (k *depthwise) tail(w *writer) {
	s, p := k.shape, k.phases[0]
	w.line("#pragma unroll")
	w.line("for (int i = 0; i < %d; i++) {", k.run)
	w.line("const int position = begin + i * %d;", k.residues)
	w.line("if (position < %d) {", k.ResultSize[1])
	w.line("const int row = line * %d + position;", k.ResultSize[1])
	w.axes(s, s.rows, "row")
	w.divisions(k.body, false)
	for _, statement := range p.row {
		w.line("%s", statement)
	}
	w.vectors(k.body, p, "0")
	w.line("}")
	w.line("}")
}

// meterReads adds what the taps ask of the caches: each run reads as many positions more as there are further taps.
func (k *depthwise) meterReads(c *Caches, down int) {
	warps := float64(k.Rows*k.ResultSize[0]*k.Kernel[0]) * float64(ceil(k.Channels, k.lanes*k.vector))
	runs := warps * float64(k.residues*k.runs)
	bytes := k.lanes * k.vector * int(shapes.ElementSize(k.In[0].Type))
	c.Lines += runs * float64(k.run+k.Kernel[1]-1) * float64(ceil(bytes, lineSize))
	// Runs of a block are neighbours.
	c.Sectors += runs / float64(down) * float64(down*k.run+k.Kernel[1]-1) * float64(ceil(bytes, sectorSize))
	c.Sectors += runs / float64(down*k.Kernel[0]) * float64(ceil(4*k.Taps()*k.lanes*k.vector, sectorSize))
}
