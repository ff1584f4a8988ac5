package ortgraphs

import (
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// StepCost is the cost of one training step, computed from the shapes of the training graphs (package shapes): the sum
// over the players, and the largest memory of any.
type StepCost struct {
	// Bucket is the index of the bucket. BatchSize is the number of rows.
	Bucket    int `json:"bucket"`
	BatchSize int `json:"batch_size"`
	// FLOPs and Bytes count what the nodes compute, and read and write. They are upper bounds, because fusion lowers
	// them.
	FLOPs float64 `json:"flops"`
	Bytes float64 `json:"bytes"`
	// InputBytes is the size of the batch's tensors. Each device slot holds them once.
	InputBytes float64 `json:"input_bytes"`
	// ActivationBytes is the largest memory for values between the nodes at one time, if each is freed after its last
	// use.
	ActivationBytes float64 `json:"activation_bytes"`
	// Problem says why the counts are missing or too low: a node that does not run with these sizes, or whose shape is
	// unknown.
	Problem string `json:"problem,omitempty"`
}

// maxSteps is the number of buckets for which the cost is computed.
const maxSteps = 32

// BatchSizes are the batch sizes of Summary.Steps.
var BatchSizes = []int{1, 8, 16, 32}

func (b *Bundle) steps() []StepCost {
	models, problem := b.trainingModels(manifest.F32)
	var steps []StepCost
	for i := range b.Manifest.Buckets {
		for _, rows := range BatchSizes {
			if i >= maxSteps {
				models, problem = nil, "not computed: too many buckets"
			}
			c := b.step(models, problem, b.Manifest.Buckets[i], rows)
			c.Bucket = i
			steps = append(steps, c)
		}
	}
	return steps
}

// Step returns the cost of a batch of that many rows in a bucket, for the training graphs of a precision. The bucket
// need not be one of the bundle's, and the cost does not name it.
func (b *Bundle) Step(precision manifest.DType, bucket manifest.Bucket, rows int) StepCost {
	models, problem := b.trainingModels(precision)
	return b.step(models, problem, bucket, rows)
}

// trainingModels returns the training graph of each player, or none and a problem.
func (b *Bundle) trainingModels(precision manifest.DType) (models []*onnxpb.ModelProto, problem string) {
	for _, player := range b.Manifest.InTurn() {
		g, ok := b.Manifest.TrainingGraph(player.Name, precision)
		if !ok {
			return nil, "there is no training graph in " + string(precision)
		}
		models = append(models, b.Model(g.File))
	}
	return models, ""
}

func (b *Bundle) step(models []*onnxpb.ModelProto, problem string, bucket manifest.Bucket, rows int) StepCost {
	sizes := bucket.Values(rows)
	c := StepCost{BatchSize: rows, InputBytes: inputBytes(b.Manifest, sizes), Problem: problem}
	for _, model := range models {
		c.count(model, sizes)
	}
	return c
}

// count adds a graph.
func (c *StepCost) count(model *onnxpb.ModelProto, sizes shapes.Sizes) {
	r, err := shapes.Infer(model, sizes)
	if err != nil {
		c.Problem = err.Error()
		return
	}
	cost := r.Cost()
	c.FLOPs, c.Bytes, c.ActivationBytes = c.FLOPs+cost.FLOPs, c.Bytes+cost.Bytes,
		max(c.ActivationBytes, float64(cost.Peak))
	if cost.Unknown > 0 {
		c.Problem = "the shapes of some nodes are not known"
	}
}

func inputBytes(m *manifest.Bundle, values map[string]int) float64 {
	total := 0.0
	for _, t := range m.Inputs {
		shape, err := t.Shape.Resolve(values)
		if err != nil {
			continue // Load would have refused it
		}
		total += elements(shape) * float64(t.DType.Size())
	}
	return total
}

// elements is a float, because the product of eight numbers of the manifest may exceed any integer.
func elements(shape []int) float64 {
	n := 1.0
	for _, d := range shape {
		n *= float64(d)
	}
	return n
}
