package ortgraphs

import (
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// StepCost is what one training step takes, computed from the shapes of the training graph (package shapes).
type StepCost struct {
	// Bucket is the index of the bucket, BatchSize the rows of the batch.
	Bucket    int `json:"bucket"`
	BatchSize int `json:"batch_size"`
	// FLOPs and Bytes count what the nodes compute, and read and write: an upper bound, which fusion lowers.
	FLOPs float64 `json:"flops"`
	Bytes float64 `json:"bytes"`
	// InputBytes is the size of the batch's tensors: each slot of the device holds them once.
	InputBytes float64 `json:"input_bytes"`
	// ActivationBytes is the most that values between the nodes take at one time, when each is freed behind its last use.
	ActivationBytes float64 `json:"activation_bytes"`
	// Problem says why the counts are missing or too low: a node that does not run with these sizes, or whose shape is
	// not known.
	Problem string `json:"problem,omitempty"`
}

// maxSteps is the number of buckets that are followed through the graph.
const maxSteps = 32

// BatchSizes are those that Summary.Steps is computed for.
var BatchSizes = []int{1, 8, 16, 32}

func (b *Bundle) steps() []StepCost {
	model, problem := b.trainingModel(manifest.F32)
	var steps []StepCost
	for i := range b.Manifest.Buckets {
		for _, rows := range BatchSizes {
			if i >= maxSteps {
				model, problem = nil, "not computed: too many buckets"
			}
			steps = append(steps, b.step(model, problem, i, rows))
		}
	}
	return steps
}

// Step is the cost of a batch of that many rows in a bucket, by the training graph of a precision.
func (b *Bundle) Step(precision manifest.DType, bucket, rows int) StepCost {
	model, problem := b.trainingModel(precision)
	return b.step(model, problem, bucket, rows)
}

// trainingModel returns nil and a problem when there is none.
func (b *Bundle) trainingModel(precision manifest.DType) (model *onnxpb.ModelProto, problem string) {
	g, ok := b.Manifest.Graph("train", string(precision))
	if !ok {
		return nil, "there is no training graph in " + string(precision)
	}
	model, err := ReadModel(b.Path(g.File))
	if err != nil {
		return nil, err.Error()
	}
	return model, ""
}

func (b *Bundle) step(model *onnxpb.ModelProto, problem string, bucket, rows int) StepCost {
	sizes := b.Manifest.Buckets[bucket].Values(rows)
	c := StepCost{Bucket: bucket, BatchSize: rows, InputBytes: inputBytes(b.Manifest, sizes), Problem: problem}
	if model != nil {
		c.count(model, sizes)
	}
	return c
}

func (c *StepCost) count(model *onnxpb.ModelProto, sizes shapes.Sizes) {
	r, err := shapes.Infer(model, sizes)
	if err != nil {
		c.Problem = err.Error()
		return
	}
	cost := r.Cost()
	c.FLOPs, c.Bytes, c.ActivationBytes, c.Problem = cost.FLOPs, cost.Bytes, float64(cost.Peak), ""
	if cost.Unknown > 0 {
		c.Problem = "the shapes of some nodes are not known"
	}
}

func inputBytes(m *manifest.Bundle, values map[string]int) float64 {
	total := 0.0
	for _, t := range m.Inputs {
		shape, err := t.Shape.Resolve(values)
		if err != nil {
			continue // Load has refused it
		}
		total += elements(shape) * float64(t.DType.Size())
	}
	return total
}

// elements is a float: the product of eight numbers of the manifest may be beyond any integer.
func elements(shape []int) float64 {
	n := 1.0
	for _, d := range shape {
		n *= float64(d)
	}
	return n
}
