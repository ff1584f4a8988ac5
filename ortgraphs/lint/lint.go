package lint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Rule is the kind of a finding.
type Rule string

// The rules. Each finding costs time, reproducibility or correctness on a GPU.
const (
	CPUNode           Rule = "cpu-node"           // no CUDA kernel: the node runs on the CPU
	Memcpy            Rule = "memcpy"             // a transfer between host and device within the step
	HostSync          Rule = "host-sync"          // the host waits for the device
	NonDeterministic  Rule = "non-deterministic"  // different numbers in each run
	FrozenDimension   Rule = "frozen-dimension"   // a size of the export's example is part of the graph
	OversizedConstant Rule = "oversized-constant" // a constant that should be an input or be computed
	CUDAGraph         Rule = "cuda-graph"         // cannot be captured, or is wrong when replayed
	Unknown           Rule = "unknown"            // the shape is unknown, so the other rules cannot be checked after it
)

// Finding is one fault.
type Finding struct {
	Rule Rule `json:"rule"`
	// Place names the node, or the constant.
	Place  string `json:"place"`
	Op     string `json:"op,omitempty"`
	Reason string `json:"reason"`
	// Fix says what to write in the model instead.
	Fix string `json:"fix"`
}

func (f Finding) String() string {
	at := f.Place
	if f.Op != "" {
		at += " (" + f.Op + ")"
	}
	return fmt.Sprintf("%s: %s: %s; %s", f.Rule, at, f.Reason, f.Fix)
}

// MaxConstant is the largest allowed size of a constant, in bytes.
const MaxConstant = 1 << 20

// maxInputs is the largest number of tensors for which the kernel of Concat takes their addresses as arguments. With
// more, it copies a table from the host.
const maxInputs = 32

// Trials returns the sizes with which a bundle's graphs are checked: each bucket, and the largest that can be computed,
// with one row and with several.
func Trials(m *manifest.Bundle) []shapes.Sizes {
	var trials []shapes.Sizes
	buckets := m.Buckets
	if m.Dynamic != nil {
		buckets = append(slices.Clone(buckets), m.Fit(m.Dynamic))
	}
	for _, bucket := range buckets {
		for _, rows := range []int{1, 3, 8} {
			trials = append(trials, bucket.Values(rows))
		}
	}
	return trials
}

// InferenceTrials returns the sizes with which an inference graph is checked: for each of two sizes, one row and
// several. A symbol that buckets have is as large as in the first and in the last of them.
func InferenceTrials(m *manifest.Bundle, g manifest.InferenceGraph) []shapes.Sizes {
	var trials []shapes.Sizes
	for i, bucket := range []manifest.Bucket{m.Buckets[0], m.Buckets[len(m.Buckets)-1]} {
		for _, rows := range []int{1, 3} {
			sizes := shapes.Sizes{}
			for k, t := range g.Inputs {
				for _, d := range t.Shape {
					if _, ok := sizes[d.Symbol]; d.Symbol != "" && !ok {
						sizes[d.Symbol] = cmp.Or(bucket[d.Symbol], smallSize<<i+k)
					}
				}
			}
			sizes[manifest.BatchSymbol] = rows
			trials = append(trials, sizes)
		}
	}
	return trials
}

// smallSize is the size of a symbol that no bucket has, such as the steps that a decoder has made. Tables of positions
// have more rows.
const smallSize = 12

// Check returns the findings for a model's graph, in the order of its nodes. A fault that occurs with several trials is
// reported once. Trials must not be empty.
func Check(model *onnxpb.ModelProto, trials []shapes.Sizes) []Finding {
	l := &linter{list: []Finding{}, seen: map[string][]Rule{}} // as JSON: never null
	for _, sizes := range trials {
		r, err := shapes.Infer(model, sizes)
		if err != nil {
			l.frozen(err, sizes)
			continue
		}
		l.constants(r)
		p := place(r)
		for _, n := range r.Nodes {
			l.node(n, p)
		}
	}
	return l.list
}

type linter struct {
	list []Finding
	seen map[string][]Rule // by place
}

func (l *linter) add(f Finding) {
	if !slices.Contains(l.seen[f.Place], f.Rule) {
		l.seen[f.Place] = append(l.seen[f.Place], f.Rule)
		l.list = append(l.list, f)
	}
}

func (l *linter) found(rule Rule, n *shapes.Node, fix, format string, args ...any) {
	l.add(Finding{Rule: rule, Place: n.Place, Op: n.Op(), Reason: fmt.Sprintf(format, args...), Fix: fix})
}

func (l *linter) frozen(err error, sizes shapes.Sizes) {
	fault, ok := errors.AsType[*shapes.NodeError](err)
	if !ok {
		l.add(Finding{Rule: Unknown, Place: "the graph", Reason: err.Error(), Fix: "export it again"})
		return
	}
	l.add(Finding{
		Rule: FrozenDimension, Place: fault.Place, Op: fault.Op,
		Reason: fmt.Sprintf("%s with %s", fault.Reason, sizesText(sizes)),
		Fix:    "take the size from an input's shape instead of a number of the example batch",
	})
}

func sizesText(sizes shapes.Sizes) string {
	var parts []string
	for symbol, n := range sizes {
		parts = append(parts, fmt.Sprintf("%s %d", symbol, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (l *linter) constants(r *shapes.Result) {
	large := func(v *shapes.Value, place, op string) {
		if v != nil && v.Bytes() > MaxConstant {
			l.add(Finding{
				Rule: OversizedConstant, Place: place, Op: op,
				Reason: fmt.Sprintf("%.1f MiB of numbers in the graph", float64(v.Bytes())/(1<<20)),
				Fix:    "make it a parameter, or compute it from positions",
			})
		}
	}
	for _, v := range r.Constants {
		large(v, "initializer "+v.Name, "")
	}
	for _, n := range r.Nodes {
		if n.Op() == "Constant" && len(n.Out) > 0 {
			large(n.Out[0], n.Place, n.Op())
		}
	}
}

// random draws from a generator of the session, whose state is in no checkpoint.
var random = []string{
	"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial",
}

func (l *linter) node(n *shapes.Node, p placement) {
	op := n.Op()
	switch {
	case slices.Contains(random, op) || op == "Dropout" && n.Input(2) != nil:
		l.found(NonDeterministic, n, "compute the mask from the seed input",
			"draws numbers from a generator of the session")
		return
	case op == "NonZero" || op == "Compress" || op == "Unique" || op == "NonMaxSuppression":
		l.found(HostSync, n, "multiply by a mask, or use Where",
			"the shape of its output depends on the data, so the host must read it")
		return
	case op == "Scan":
		l.found(HostSync, n, "use convolutions or attention over time where speed matters",
			"the host starts every step of the recurrence, and no CUDA graph holds it")
		return
	case op == "If" || op == "Loop":
		l.found(HostSync, n, "write it without a branch or loop: use Where, or unroll the steps",
			"the host decides what runs next")
		return
	case p.cpu[n]:
		return
	}
	if op == "MemcpyToHost" || op == "MemcpyFromHost" {
		l.found(Memcpy, n, "find the neighbouring node that runs on the CPU",
			"ONNX Runtime inserted a copy between host and device here")
		return
	}
	if has, types := kernel(n); !has {
		reason := "the CUDA provider has no kernel for it"
		fix := "write it with other operators"
		if types != "" {
			reason = fmt.Sprintf("the CUDA provider has no kernel for it with %s (only %s)",
				typeNames[n.Input(data[op]).Type], types)
			fix = "compute it in f32 and cast, or write it with other operators"
		}
		l.found(CPUNode, n, fix, "%s", reason)
		return
	}
	l.transfers(n, p)
	l.capture(n)
	if op == "ScatterND" || op == "ScatterElements" {
		if a := n.Attribute("reduction"); a != nil && string(a.GetS()) != "none" {
			l.found(NonDeterministic, n, "multiply by a one-hot matrix",
				"adds with atomic operations, in a different order in each run")
		}
	}
	unknown := func(v *shapes.Value) bool { return v != nil && !v.Known() }
	if len(l.seen[n.Place]) == 0 && slices.ContainsFunc(n.Out, unknown) && !slices.ContainsFunc(n.In, unknown) {
		l.found(Unknown, n, "write it with other operators",
			"the shape of its output cannot be derived, so the nodes after it are not checked")
	}
}

// transfers finds values that are on the wrong device.
func (l *linter) transfers(n *shapes.Node, p placement) {
	for i, v := range n.In {
		switch want := slices.Contains(onHost[n.Op()], i); {
		case v == nil || v.Constant:
		case want && !p.host[v]:
			l.found(HostSync, n, "compute it from Shape, or make it a constant",
				"%s is computed on the device, but the host needs it for the output's shape", v.Name)
		case !want && p.host[v] && n.Op() != "Shape" && n.Op() != "Size":
			l.found(Memcpy, n, "compute it from a tensor on the device: a mean by a sum and a count that is a tensor "+
				"(lengths, the sum of a mask)",
				"%s is computed from shapes on the host and copied to the device here", v.Name)
		}
	}
	// A Range whose first number comes from a shape moves a number of the host to the device indirectly: the captured
	// graph keeps the number of the shape with which it was captured.
	if n.Op() == "Range" && n.Input(0) != nil && !n.In[0].Constant {
		l.found(CUDAGraph, n, "compute it from a tensor on the device",
			"brings a number that is computed from shapes to the device; it is stale when replayed for another shape")
	}
}

// capture finds nodes whose kernels read tables in host memory, which a captured graph reads again at replay.
func (l *linter) capture(n *shapes.Node) {
	switch n.Op() {
	case "GatherND":
		l.found(CUDAGraph, n, "use Gather or GatherElements",
			"its kernel copies a table from the host, which is stale at replay")
	case "Concat":
		if len(n.In) > maxInputs {
			l.found(CUDAGraph, n, "concatenate in two steps",
				"%d inputs: from %d on its kernel copies a table from the host, which is stale at replay", len(n.In),
				maxInputs+1)
		} else if unequal(n.In) {
			l.found(CUDAGraph, n, "pad each part with zeros and add them",
				"parts of different sizes: its kernel copies a table from the host, which is stale at replay")
		}
	case "Split":
		if unequal(n.Out) {
			l.found(CUDAGraph, n, "slice instead",
				"parts of different sizes: its kernel copies a table from the host, which is stale at replay")
		}
	case "MatMul", "com.microsoft.FusedMatMul":
		a, b, ok := n.MatMulShapes()
		if !ok || len(b) == 2 {
			return
		}
		batchA, batchB := a[:len(a)-2], b[:len(b)-2]
		if !slices.Equal(batchA, batchB) && !(ones(batchA) && ones(batchB)) {
			l.found(CUDAGraph, n, "expand the smaller operand, or fold the batch into the rows",
				"broadcasts %d by %d: its kernel copies a table from the host, which is stale at replay", a, b)
		}
	}
}

func ones(shape []int64) bool {
	return !slices.ContainsFunc(shape, func(d int64) bool { return d != 1 })
}

// unequal reports whether the parts of a tensor differ in size. Their shapes differ along one axis only.
func unequal(parts []*shapes.Value) bool {
	if slices.ContainsFunc(parts, func(v *shapes.Value) bool { return !v.Known() }) {
		return false // already reported
	}
	return slices.ContainsFunc(parts, func(v *shapes.Value) bool { return !slices.Equal(v.Shape, parts[0].Shape) })
}
