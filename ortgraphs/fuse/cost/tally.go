package cost

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// tally counts what a graph costs.
type tally struct {
	Settings
	graph   *fuse.Graph
	regions []*fuse.Region
	kernels []*cudac.Kernel
	plain   map[int]string
	outputs map[*fuse.Tensor]bool
	spilled map[*fuse.Tensor]cause // tensors that another form would not write
	items   []item
	single  bool // nodes are launched one by one

	clock float64                  // bytes that have been moved
	last  map[*fuse.Tensor]float64 // when a tensor was moved
}

func newTally(
	g *fuse.Graph, regions []*fuse.Region, kernels []*cudac.Kernel, plain map[int]string, s Settings,
) *tally {
	t := &tally{
		Settings: s, graph: g, regions: regions, kernels: kernels, plain: plain, outputs: map[*fuse.Tensor]bool{},
		last: map[*fuse.Tensor]float64{}, single: s.Uncaptured != "",
	}
	for _, o := range g.Outputs {
		t.outputs[o.Tensor] = true
	}
	launched := map[*fuse.Node]bool{}
	for i, r := range regions {
		for _, n := range r.Nodes {
			launched[n] = kernels[i] != nil && plain[i] == ""
		}
	}
	for _, n := range g.Nodes {
		t.single = t.single || n.Kind == fuse.Opaque && n.Model.Step != nil && !launched[n]
	}
	t.spilled = t.findSpilled()
	return t
}

// count makes an item of each region, and of each node outside.
func (t *tally) count() {
	in := map[*fuse.Node]int{}
	for i, r := range t.regions {
		for _, n := range r.Nodes {
			in[n] = i
		}
	}
	seen := map[int]bool{}
	for _, n := range t.graph.Nodes {
		i, ok := in[n]
		switch {
		case ok && !seen[i]:
			seen[i] = true
			t.region(t.regions[i], t.kernels[i], t.plain[i])
		case ok:
		case n.Kind == fuse.Product:
			t.product(n)
		case n.Kind == fuse.Opaque:
			t.exported(n)
		}
	}
	if t.UpdateBytes > 0 {
		floor := float64(t.UpdateBytes) / t.Card.Bandwidth
		t.items = append(t.items, item{part: Update, what: "the optimizer", launches: 4, work: floor / reachedBytes,
			floor: floor})
	}
}

// moved is the time for reading and writing, by the bytes that are in the cache and those that are not.
func (t *tally) moved(far, near float64) float64 {
	return far/(t.Card.Bandwidth*reachedBytes) + near/t.Card.cacheRate()
}

// touch counts the bytes of a tensor that are moved, and reports whether the cache has it: since it was moved, no more
// bytes than half of the cache were.
func (t *tally) touch(x *fuse.Tensor, bytes float64) (near bool) {
	at, known := t.last[x]
	near = known && t.clock-at < t.Card.Cache/2
	t.clock += bytes
	t.last[x] = t.clock
	return near
}

// traffic is the time in which a kernel reads and writes, and the floor of that. share is how much of what it reads it
// needs.
func (t *tally) traffic(in, out []*fuse.Tensor, share float64) (expected, floor float64) {
	far, near, needed := 0.0, 0.0, 0.0
	seen := map[*fuse.Tensor]bool{}
	for i, list := range [][]*fuse.Tensor{in, out} {
		for _, x := range list {
			if x == nil || seen[x] {
				continue
			}
			seen[x] = true
			bytes := float64(x.Bytes())
			if i == 0 {
				bytes *= share
			}
			if t.touch(x, bytes) && i == 0 {
				near += bytes
			} else {
				far += bytes
			}
			if _, ok := t.spilled[x]; !ok {
				needed += bytes
			}
		}
	}
	return t.moved(far, near), needed / t.Card.Bandwidth
}

// doubleSteps is how many times more instructions a function in f64 has than one in f32.
const doubleSteps = 3

// instructions is how many instructions of the rate of f32 a node takes for each element.
func (t *tally) instructions(n *fuse.Node) float64 {
	count := instructionsOf(n)
	if n.In[len(n.In)-1].Tensor.Type != onnxpb.TensorProto_DOUBLE && n.Out[0].Type != onnxpb.TensorProto_DOUBLE {
		return count
	}
	if count > 1 {
		count *= doubleSteps
	}
	return count * t.Card.doubles()
}

// combining is how many instructions of the rate of f32 a Cumulation takes for each element, in two passes at most.
func (t *tally) combining(n *fuse.Node) float64 {
	double := t.Card.doubles()
	power := 8.0
	if n.Out[0].Type == onnxpb.TensorProto_DOUBLE {
		power *= doubleSteps * double
	}
	switch n.Op {
	case fuse.Affine: // two conversions; two products and a sum with comparisons, of which the second pass needs half
		return 14 * double
	case fuse.LogAddExp: // an exponential, comparisons, and a product and a sum in f64; then a logarithm
		return 2*(power+6+2*double) + power
	}
	return 4 * double // a conversion and an addition
}

func instructionsOf(n *fuse.Node) float64 {
	whole := n.Out[0].Type == onnxpb.TensorProto_INT64 || n.Out[0].Type == onnxpb.TensorProto_INT32
	switch n.Op {
	case "Div", "Mod":
		if whole {
			return 30
		}
		return 8
	case "Exp", "Log", "Sqrt", "Rsqrt", "Reciprocal":
		return 8
	case "Tanh", "Erf", "Sigmoid", "Gelu", "GeluTanh", "Pow", "Softplus", "Sin", "Cos":
		return 16
	}
	return 1
}

// arithmetic is the time of the instructions of nodes at the data sheet's rate.
func (t *tally) arithmetic(nodes []*fuse.Node) float64 {
	count := 0.0
	for _, n := range nodes {
		elements := n.Out[0].Elements()
		switch n.Kind {
		case fuse.Reduction:
			elements = n.In[0].Tensor.Elements()
		case fuse.Cumulation:
			count += float64(elements) * t.combining(n)
			continue
		case fuse.Elementwise:
		default:
			continue
		}
		count += float64(elements) * t.instructions(n)
	}
	return count / (t.Card.F32 / 2)
}

// clock is that of the multiprocessors, each of which computes 128 products and sums of f32 in a clock.
func (c Card) clock() float64 { return c.F32 / float64(256*c.Multiprocessors) }

// cacheRate is what the second-level cache delivers, in bytes a second.
func (c Card) cacheRate() float64 { return cacheBytes * c.clock() * float64(c.Multiprocessors) }

// caching is the time that the caches take for a kernel.
func (t *tally) caching(c cudac.Caches) float64 {
	lines := c.Lines / (linesInClock * t.Card.clock() * float64(t.Card.Multiprocessors))
	return max(lines, c.Sectors*32/t.Card.cacheRate())
}

func (t *tally) region(r *fuse.Region, k *cudac.Kernel, plain string) {
	_, recurrences := r.Work.(*fuse.RecurrenceKernel)
	switch isPlain := k == nil || plain != ""; {
	case isPlain && recurrences:
		for _, n := range r.Nodes {
			t.exported(n)
		}
		return
	case isPlain:
		t.plainRegion(r, plain)
		return
	}
	switch w := r.Work.(type) {
	case *fuse.Products:
		t.products(r, w)
	case *fuse.Convolution:
		t.convolution(r, w)
	case *fuse.NarrowGradient:
		t.narrowGradient(r, w)
	case *fuse.Attention:
		t.attention(r, w)
	case *fuse.RecurrenceKernel:
		t.recurrenceKernel(r, w, k)
	case *fuse.Depthwise:
		t.depthwise(r, w, k)
	default:
		t.places(r, k)
	}
}

// share is how much of its operands a region reads.
func share(r *fuse.Region) float64 {
	whole := 0
	for _, x := range r.In {
		whole += x.Bytes()
	}
	return float64(r.Read) / float64(max(1, whole))
}

// stepSeconds is what a step of a kernel of recurrences takes, in which all blocks wait for each other: two directions
// of an LSTM of 256 units with 16 rows take 4.5 us on an H200. No faster form is known.
const stepSeconds = 4.5e-6

// ownStepSeconds is what a step takes in which no block waits for another one: each thread reads from memory what its
// last step has passed on. So much of a step of 4.84 ms on an H200 is left for each of the 448 steps of the eight
// recurrences of a minimal GRU, 16 rows of 256 units, without what is predicted for all else.
const ownStepSeconds = 0.6e-6

func (t *tally) recurrenceKernel(r *fuse.Region, of *fuse.RecurrenceKernel, k *cudac.Kernel) {
	expected, floor := t.traffic(r.In, r.Out, share(r))
	steps := ownStepSeconds
	if k.Meets {
		steps = stepSeconds
	}
	steps *= float64(of.Of[r.Nodes[0]].Steps)
	t.items = append(t.items, item{
		part: Regions, what: fmt.Sprintf("%s over %v", r.Ops(), r.Domain), tensor: r.Out[0].Name, launches: 2,
		work: max(expected, steps), floor: max(floor, steps),
	})
}

func (t *tally) places(r *fuse.Region, k *cudac.Kernel) {
	expected, floor := t.traffic(r.In, r.Out, share(r))
	arithmetic, caching := t.arithmetic(r.Nodes), t.caching(k.Caches)
	i := item{
		part: Regions, what: fmt.Sprintf("%s over %v", r.Ops(), r.Domain), tensor: r.Out[0].Name, launches: 1,
		work: max(expected, arithmetic/reachedArithmetic, caching), floor: max(floor, arithmetic),
	}
	for _, x := range r.Out {
		if _, ok := t.spilled[x]; ok {
			i.what += fmt.Sprintf(", which write %.0f MB", float64(x.Bytes())/1e6)
		}
	}
	if i.cause = t.spilledBy(r.In, r.Out); i.why == "" && i.work == caching {
		i.cause = cause{"neighbouring threads read or write places that are apart in memory", Nothing}
	}
	t.items = append(t.items, i)
}

// plainRegion counts the nodes of a region without a kernel. Its floor is that of the kernel.
func (t *tally) plainRegion(r *fuse.Region, reason string) {
	i := item{
		part: Regions, what: r.Ops(), tensor: r.Out[0].Name, cause: reasonOf(r, reason),
		floor: float64(r.Read+r.Written) / t.Card.Bandwidth,
	}
	if c := fuse.ConvolutionOf(r.Work); c != nil {
		i.part, i.floor = Convolutions, max(i.floor, needed(c)/t.peak(c.Type))
	}
	if _, ok := r.Work.(*fuse.Attention); ok {
		i.part = Attention
	}
	if _, ok := r.Work.(*fuse.Products); ok {
		i.part = Products
	}
	products := 0.0
	for _, n := range r.Nodes {
		var in []*fuse.Tensor
		for _, o := range n.In {
			in = append(in, o.Tensor)
		}
		seconds, _ := t.traffic(in, n.Out, 1)
		if n.Kind == fuse.Product {
			f := formOf(n)
			computing, _ := f.seconds(t.Settings)
			seconds = max(seconds, computing)
			products += f.flops() / t.peak(f.element)
		}
		i.work += seconds
		i.launches++
	}
	if i.part != Convolutions {
		i.floor = max(i.floor, products)
	}
	t.items = append(t.items, i)
}

// exported counts a node that runs as the model has it.
func (t *tally) exported(n *fuse.Node) {
	m := n.Model
	i := item{part: AsExported, what: n.Op, tensor: n.Out[0].Name, launches: 1}
	switch {
	case m.Step != nil:
		t.exportedSteps(&i, m)
	case n.Op == "MatMul" || n.Op == "Gemm" || n.Op == "Conv" || n.Op == "ConvTranspose":
		i.part = Products
		i.work, i.floor = t.exportedProduct(m)
	default:
		bytes := float64(fuse.Moved(m))
		i.work, i.floor = t.moved(bytes, 0), bytes/t.Card.Bandwidth
		switch axis := longest(m); n.Op {
		case "CumSum": // each element adds up those before it
			i.work += float64(m.Out[0].Elements()) * float64(axis) / 2 / (t.Card.F32 / 2 * reachedArithmetic)
		case "TopK": // a sort in passes over memory
			i.work *= sortPasses
		}
		i.cause = cause{"runs as exported: " + n.Left(), Nothing}
	}
	t.items = append(t.items, i)
}

// sortPasses is how often a library reads and writes what it sorts: 64 bits, eight at a time, counted and moved.
const sortPasses = 16

// longest is the longest dimension of a node's first operand.
func longest(n *shapes.Node) (longest int64) {
	if v := n.Input(0); v.Known() {
		for _, d := range v.Shape {
			longest = max(longest, d)
		}
	}
	return longest
}

// exportedProduct is the time of a product or convolution that runs as the model has it.
func (t *tally) exportedProduct(n *shapes.Node) (work, floor float64) {
	bytes := float64(fuse.Moved(n))
	work, floor = t.moved(bytes, 0), bytes/t.Card.Bandwidth
	f := form{count: 1, element: n.Out[0].Type}
	if a, b, ok := n.MatMulShapes(); ok {
		f.inner, f.columns = int(a[len(a)-1]), int(b[len(b)-1])
	} else if w := n.Input(1); w.Known() && len(w.Shape) > 1 {
		f.columns, f.inner = int(w.Shape[0]), int(w.Elements()/max(1, w.Shape[0]))
	}
	f.rows = int(n.Out[0].Elements()) / max(1, f.columns)
	computing, _ := f.seconds(t.Settings)
	return max(work, computing), max(floor, f.flops()/t.peak(f.element))
}

// exportedSteps counts the nodes of all steps. Each is launched by itself.
func (t *tally) exportedSteps(i *item, n *shapes.Node) {
	launches, work, floor := t.step(n.Step)
	launches += len(n.In) + len(n.Out) // what enters and leaves each step is copied
	i.launches, i.work, i.floor = launches*int(n.Steps), work*float64(n.Steps), floor*float64(n.Steps)
	i.what = fmt.Sprintf("%d steps of %d launches", n.Steps, launches)
	i.cause = cause{"the steps of a recurrence run one after another, without a CUDA graph", NoRecurrence}
}

func (t *tally) step(r *shapes.Result) (launches int, work, floor float64) {
	for _, n := range r.Nodes {
		w, f, count := 0.0, 0.0, 1
		switch op := n.Op(); {
		case n.IsView() || len(n.Out) == 0 || n.Out[0] == nil || n.Out[0].Constant || n.Out[0].Data != nil:
			continue
		case n.Step != nil:
			count, w, f = t.step(n.Step)
			count, w, f = count*int(n.Steps), w*float64(n.Steps), f*float64(n.Steps)
		case op == "MatMul" || op == "Gemm":
			w, f = t.exportedProduct(n)
		default:
			bytes := float64(fuse.Moved(n))
			w, f = t.moved(0, bytes), bytes/t.Card.cacheRate()
		}
		launches, work, floor = launches+count, work+w, floor+f
	}
	return launches, work, floor
}
