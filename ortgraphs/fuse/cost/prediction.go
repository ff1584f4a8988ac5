package cost

import (
	"cmp"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
)

// Settings say where and how a graph runs.
type Settings struct {
	Card Card
	// TF32 says that products of f32 round their operands to TF32.
	TF32 bool
	// Uncaptured says why the nodes are launched one by one, without a CUDA graph; it is empty if they are not. Graphs
	// with a recurrence that no kernel computes always are.
	Uncaptured string
	// UpdateBytes are those that the optimizer reads and writes in a step.
	UpdateBytes int
	// BF16 says that there is a graph in bf16, too. BF16Attention reports whether attention of this one can be rounded
	// to bf16; nil means that it cannot.
	BF16          bool
	BF16Attention func() bool
}

// Prediction is what a step is expected to take.
type Prediction struct {
	Card string `json:"card"`
	// MS is the expected time of a step, FloorMS the sum of the floors, in ms.
	MS      float64 `json:"ms"`
	FloorMS float64 `json:"floor_ms"`
	// Launches is the number of kernels and calls of libraries, and CUDAGraph whether they are recorded.
	Launches  int    `json:"launches"`
	CUDAGraph bool   `json:"cuda_graph"`
	Parts     []Part `json:"parts"`
	// Slow is what takes more than twice its floor, by the reason, if that is at least 1 % of the step. The most time
	// is the first.
	Slow []Slow `json:"slow"`
}

// Part is a part of a step.
type Part struct {
	Name    string  `json:"name"`
	MS      float64 `json:"ms"`
	FloorMS float64 `json:"floor_ms"`
}

// Names of parts. Launches are not included in the others.
const (
	Products     = "products"
	Convolutions = "convolutions"
	Attention    = "attention"
	Regions      = "regions"
	AsExported   = "nodes as exported"
	Update       = "update"
	Launches     = "launches"
)

// Slow are the nodes and regions that take more than twice their floor for one reason.
type Slow struct {
	Why string `json:"why"`
	// Mend says what would change that.
	Mend    Mend    `json:"mend"`
	MS      float64 `json:"ms"`
	FloorMS float64 `json:"floor_ms"`
	// Small says that nothing is slow but the launches of small kernels.
	Small bool `json:"small"`
	// Kinds are the nodes and regions, equal ones together, the most time first.
	Kinds []Kind `json:"kinds"`
}

// Kind is a number of equal nodes or regions.
type Kind struct {
	What     string   `json:"what"`
	Tensors  []string `json:"tensors"` // that they compute
	Launches int      `json:"launches"`
	MS       float64  `json:"ms"`
	FloorMS  float64  `json:"floor_ms"`
}

// Mend is a way to make something faster.
type Mend string

// What can be done. Nothing says that neither the model's author nor a flag can do anything.
const (
	Nothing       Mend = "nothing"
	UseBF16       Mend = "bf16"           // train in bf16
	BF16Attention Mend = "bf16 attention" // round attention to bf16
	MoreRows      Mend = "more rows"      // a larger batch
	Channels      Mend = "channels"       // channels of a group that are a multiple of 8
	Aligned       Mend = "aligned"        // sizes that are a multiple of 8
	Wider         Mend = "wider"          // layers with more columns, or fewer groups
	HeadColumns   Mend = "head columns"   // heads of 16 to 128 columns, a multiple of 16
	PlainScores   Mend = "plain scores"   // attention whose scores only the softmax reads
	NoRecurrence  Mend = "no recurrence"  // layers that compute all positions together
	Capture       Mend = "cuda graph"     // a graph without what keeps it out of a CUDA graph
	Report        Mend = "report"         // report the faulty kernel
)

// remedies say in words what can be done.
var remedies = map[Mend]string{
	Nothing:       "no setting mends that",
	UseBF16:       "--precision bf16 mends that",
	BF16Attention: "--attention bf16 mends that",
	MoreRows:      "a larger --batch-size uses the GPU better",
	Channels:      "channels that are a multiple of 8 mend that",
	Aligned:       "sides that are a multiple of 8 mend that: of layers, frames or tokens",
	Wider:         "wider layers, or fewer groups, compute more in the same time",
	HeadColumns:   "heads of 16 to 128 columns, a multiple of 16, mend that",
	PlainScores:   "scores that only the softmax reads, without a trained bias, mend that",
	NoRecurrence:  "layers that compute all positions together mend that, such as convolutions or attention",
	Capture:       "--cuda-graphs auto captures a graph of which graph lint finds nothing",
	Report:        "please report the warning of the start",
}

// String says in words what would make something faster.
func (m Mend) String() string { return remedies[m] }

// partNames are in the order in which they are shown.
var partNames = []string{Products, Convolutions, Attention, Regions, AsExported, Update, Launches}

const (
	// Parts of the data sheet's rates: regions of a step move 3.1 to 3.9 TB/s on an H200, and arithmetic between loads
	// reaches less than arithmetic alone.
	reachedBytes      = 0.75
	reachedArithmetic = 0.8
	// What the caches do for a multiprocessor in a clock: the second-level cache delivers so many bytes, and its own
	// one looks up so many lines.
	cacheBytes   = 24
	linesInClock = 2.5
	// Seconds from the end of a kernel to that of the next one which has nothing to do: in a CUDA graph, and without.
	inGraph, alone = 2e-6, 5e-6
	// slowFactor and leastShare are what makes a node slow.
	slowFactor = 2
	leastShare = 0.01
)

// Of predicts a step of a graph that has been divided into regions. plain says why regions run without a kernel.
func Of(
	g *fuse.Graph, regions []*fuse.Region, kernels []*cudac.Kernel, plain map[int]string, s Settings,
) *Prediction {
	t := newTally(g, regions, kernels, plain, s)
	t.count()
	p := &Prediction{Card: s.Card.Name, CUDAGraph: !t.single, Parts: []Part{}, Slow: []Slow{}}
	parts := map[string]*Part{}
	for _, name := range partNames {
		parts[name] = &Part{Name: name}
	}
	for _, i := range t.items {
		parts[i.part].MS += 1e3 * i.work
		parts[i.part].FloorMS += 1e3 * i.floor
		parts[Launches].MS += 1e3 * t.launching(i)
		p.Launches += i.launches
	}
	for _, name := range partNames {
		if part := parts[name]; part.MS > 0 {
			p.Parts = append(p.Parts, *part)
			p.MS += part.MS
			p.FloorMS += part.FloorMS
		}
	}
	p.Slow = append(p.Slow, t.slow(p.MS)...)
	return p
}

// SlowMS is the time of all that is slow, apart from small kernels.
func (p *Prediction) SlowMS() (ms float64) {
	for _, s := range p.Slow {
		if !s.Small {
			ms += s.MS
		}
	}
	return ms
}

// item is a kernel, or a number of kernels that compute one node or region.
type item struct {
	part, what, tensor string
	launches           int
	work, floor        float64 // seconds, work apart from launches
	cause
}

// cause is why something is slow, and what would change that.
type cause struct {
	why  string
	mend Mend
}

// launching is the time of an item's launches. One by one, the next is queued while the last one computes.
func (t *tally) launching(i item) float64 {
	each := inGraph
	if t.single {
		each = max(inGraph, alone-i.work/float64(max(1, i.launches)))
	}
	return each * float64(i.launches)
}

var small = cause{"kernels so short that their launches count", MoreRows}

// slow lists what is slow in a step of so many ms, by its causes.
func (t *tally) slow(ms float64) (list []Slow) {
	found := map[cause]int{}
	for _, i := range t.items {
		launching := t.launching(i)
		whole := i.work + launching
		if whole <= slowFactor*i.floor || i.part == Update {
			continue
		}
		tiny := i.work <= slowFactor*i.floor || i.work < launching && i.mend != NoRecurrence
		switch {
		case tiny && t.Uncaptured != "":
			i.cause = cause{"kernels are launched one by one, without a CUDA graph: " + t.Uncaptured, Capture}
		case tiny:
			i.cause = small
		case i.why == "":
			i.cause = cause{"its library or kernel computes this form slowly", Nothing}
		}
		at, ok := found[i.cause]
		if !ok {
			at = len(list)
			found[i.cause] = at
			list = append(list, Slow{Why: i.why, Mend: i.mend, Small: i.cause == small})
		}
		list[at].add(i, 1e3*whole)
	}
	list = slices.DeleteFunc(list, func(s Slow) bool { return s.MS < leastShare*ms })
	for _, s := range list {
		slices.SortStableFunc(s.Kinds, func(a, b Kind) int { return cmp.Compare(b.MS, a.MS) })
	}
	slices.SortStableFunc(list, func(a, b Slow) int { return cmp.Compare(b.MS, a.MS) })
	return list
}

// add adds an item that takes so many ms.
func (s *Slow) add(i item, ms float64) {
	at := slices.IndexFunc(s.Kinds, func(k Kind) bool { return k.What == i.what })
	if at < 0 {
		at = len(s.Kinds)
		s.Kinds = append(s.Kinds, Kind{What: i.what})
	}
	k, floor := &s.Kinds[at], 1e3*i.floor
	k.Tensors, k.Launches = append(k.Tensors, i.tensor), k.Launches+i.launches
	k.MS, k.FloorMS = k.MS+ms, k.FloorMS+floor
	s.MS, s.FloorMS = s.MS+ms, s.FloorMS+floor
}
