package train

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// fusedGraphs are the training graph with its regions as kernels: a graph for each bucket, because its sizes are fixed.
type fusedGraphs struct {
	config   ort.SessionConfig // apart from the model
	plans    []*fused.Plan     // by bucket
	programs fused.Programs
	plain    []map[int]bool // by bucket: regions whose kernels gave wrong results
	sessions []*ort.Session // by bucket

	exported *ort.Session // the graph as exported, until the kernels are proved
	inputs   [][]tensors  // by slot and bucket
	outputs  tensors

	distrusted []int // buckets that run as exported, because too many of their kernels are wrong
}

// Fusion describes how the training graph is fused.
type Fusion struct {
	// Kernels is the number of kernels of the largest bucket, Left says why its other regions stay plain.
	Kernels int
	Left    []string
	// Wrong names the regions whose kernels gave other results than the graph as exported. They stay plain.
	Wrong []string
}

// fuse makes the fused graphs of all buckets, and the sessions that run them.
func (m *Model) fuse(compiler fused.Compiler, config ort.SessionConfig, exported *ort.Session) {
	if m.err != nil {
		return
	}
	f := &fusedGraphs{config: config, exported: exported}
	model := &onnxpb.ModelProto{}
	if m.err = proto.Unmarshal(config.Model, model); m.err != nil {
		return
	}
	var sources []string
	for i := range m.layouts {
		plan, err := fused.NewPlan(model, bucketSizes(m.inputs, &m.layouts[i]))
		if err != nil {
			m.err = fmt.Errorf("fuse the training graph for bucket %d: %w", i, err)
			return
		}
		f.plans, f.plain = append(f.plans, plan), append(f.plain, map[int]bool{})
		sources = append(sources, plan.Sources()...)
	}
	slices.Sort(sources)
	if f.programs, m.err = compiler.Compile(slices.Compact(sources)); m.err != nil {
		return
	}
	m.add(f.programs.Close)
	for i := range f.plans {
		f.sessions = append(f.sessions, m.openFused(f, i, nil))
	}
	m.fusion = f
}

// openFused opens the session of a bucket, with the regions plain that are known to be wrong or that plain accepts.
func (m *Model) openFused(f *fusedGraphs, bucket int, plain func(region int) bool) *ort.Session {
	if m.err != nil {
		return nil
	}
	c := f.config
	c.Name = fmt.Sprintf("%s, bucket %d, fused", c.Name, bucket)
	c.Model, c.Kernels, m.err = f.plans[bucket].Link(f.programs, func(region int) bool {
		return f.plain[bucket][region] || plain != nil && plain(region)
	})
	return m.open(c, m.capturing)
}

// bucketSizes returns the sizes of the graph's symbols in a bucket.
func bucketSizes(inputs []manifest.TensorSpec, layout *ring.Layout) shapes.Sizes {
	sizes := shapes.Sizes{}
	for _, in := range inputs {
		t, ok := layout.Find(in.Name)
		if !ok {
			continue
		}
		for i, d := range in.Shape {
			if d.Symbol != "" {
				sizes[d.Symbol] = t.Shape[i]
			}
		}
	}
	return sizes
}

// Fusion returns how the training graph is fused; nil if it is not.
func (m *Model) Fusion() *Fusion {
	if m.fusion == nil {
		return nil
	}
	out := &Fusion{}
	for bucket, p := range m.fusion.plans {
		if slices.Contains(m.fusion.distrusted, bucket) {
			out.Wrong = append(out.Wrong, fmt.Sprintf("bucket %d: more than %d kernels; it runs as exported", bucket, maxWrong))
			continue
		}
		for region := range p.Regions() {
			if m.fusion.plain[bucket][region] {
				out.Wrong = append(out.Wrong, fmt.Sprintf("bucket %d: %s", bucket, p.Describe(region)))
			}
		}
	}
	largest := m.fusion.plans[len(m.fusion.plans)-1]
	out.Left = largest.Left
	out.Kernels = largest.Regions() - len(largest.Left)
	return out
}

// bindFused returns the execution of a bucket's fused graph for a slot.
func (m *Model) bindFused(slot, bucket int, inputs, outputs tensors) execution {
	f := m.fusion
	if slot == len(f.inputs) {
		f.inputs = append(f.inputs, nil)
	}
	f.inputs[slot], f.outputs = append(f.inputs[slot], maps.Clone(inputs)), outputs
	return m.execution(f.sessions[bucket], inputs, outputs)
}

// rebind makes the steps of a bucket use another session.
func (m *Model) rebind(bucket int, s *ort.Session) {
	m.fusion.sessions[bucket] = s
	for slot, inputs := range m.fusion.inputs {
		m.train[slot][bucket] = m.execution(s, inputs[bucket], m.fusion.outputs)
	}
}
