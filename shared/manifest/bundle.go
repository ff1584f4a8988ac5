package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bundle is the content of bundle.json. docs/bundle.md is its specification.
type Bundle struct {
	Version      int               `json:"version"`
	Exporter     int               `json:"exporter,omitempty"`
	Name         string            `json:"name"`
	Description  string            `json:"description,omitempty"`
	License      string            `json:"license,omitempty"`
	Inputs       []TensorSpec      `json:"inputs"`
	Scalars      []Scalar          `json:"scalars,omitempty"`
	Outputs      []TensorSpec      `json:"outputs"`
	Probes       []Probe           `json:"probes,omitempty"`
	Parameters   []Parameter       `json:"parameters"`
	State        []State           `json:"state,omitempty"`
	Adapters     []Adapter         `json:"adapters,omitempty"`
	Buckets      []Bucket          `json:"buckets"`
	Dynamic      Bucket            `json:"dynamic,omitempty"`
	Strides      map[string]int    `json:"strides,omitempty"`
	Features     Features          `json:"features"`
	Tokenizer    *Tokenizer        `json:"tokenizer,omitempty"`
	Pipeline     []StageInstance   `json:"pipeline"`
	Optimizer    Optimizer         `json:"optimizer,omitzero"`
	Players      []Player          `json:"players,omitempty"`
	Schedule     Schedule          `json:"schedule"`
	Graphs       []Graph           `json:"graphs"`
	Inference    []InferenceGraph  `json:"inference,omitempty"`
	Synthesis    *Synthesis        `json:"synthesis,omitempty"`
	Accumulation string            `json:"accumulation"`
	Baselines    []Baseline        `json:"baselines,omitempty"`
	Cost         []Cost            `json:"cost,omitempty"`
	Files        map[string]string `json:"files"`
}

// Parameter is one tensor of the model's weights. Compute is the dtype in which graphs of precision bf16 take the
// parameter and return its gradient: BF16 (only for matrices) or F32 (also if empty). Its master weights are always
// F32.
type Parameter struct {
	Name    string   `json:"name"`
	Shape   []int    `json:"shape"`
	Decay   bool     `json:"decay,omitempty"`
	Frozen  bool     `json:"frozen,omitempty"`
	Compute DType    `json:"compute,omitempty"`
	Aliases []string `json:"aliases,omitempty"`
	// Player names the player that trains it; empty in a bundle without players.
	Player string `json:"player,omitempty"`
}

// Adapter is a LoRA adapter of a frozen weight, which is used as weight + scale * B A. The training graph applies it;
// for the inference graphs, the host does.
type Adapter struct {
	Weight string  `json:"weight"`
	A      string  `json:"a"`
	B      string  `json:"b"`
	Scale  float64 `json:"scale"`
	// Layer is the kind of layer that has the weight, if it is a known one.
	Layer string `json:"layer,omitempty"`
}

// Transposed reports whether the weight is [in, out], so that the product is transposed before it is added.
func (a Adapter) Transposed() bool { return a.Layer == "transposed" || a.Layer == "embedding" }

// Elements returns the number of values of the parameter.
func (p Parameter) Elements() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// Bucket gives a value to every symbol except B.
type Bucket map[string]int

// Values returns the values of the symbols, with B = batchSize.
func (b Bucket) Values(batchSize int) map[string]int {
	v := make(map[string]int, len(b)+1)
	for s, n := range b {
		v[s] = n
	}
	v[BatchSymbol] = batchSize
	return v
}

// Tokenizer names the tokenizer's file. Prefix is what comes before each text, of tokens of the file, with {language}
// for the language of the row.
type Tokenizer struct {
	File   string `json:"file"`
	Prefix string `json:"prefix,omitempty"`
}

// StageInstance is one entry of the pipeline: a stage, or a group of stages of which each row of a training batch gets
// some. Inputs and Outputs map the stage's ports to tensors of the batch.
type StageInstance struct {
	Name string `json:"name"`
	// Stage is the stage's name, or "plugin/stage" if two plugins have a stage of that name.
	Stage   string            `json:"stage,omitempty"`
	Config  map[string]any    `json:"config,omitempty"`
	Inputs  map[string]string `json:"inputs,omitzero"`
	Outputs map[string]string `json:"outputs,omitzero"`
	// P is the probability that a row gets the stage, or members of the group. It is 1 if nil.
	P *Probability `json:"p,omitempty"`
	// OneOf are stages of which a row gets one, in proportion to their weights.
	OneOf []StageInstance `json:"one_of,omitzero"`
	// SomeOf are stages of which a row gets Count.
	SomeOf []StageInstance `json:"some_of,omitzero"`
	Count  *Count          `json:"count,omitempty"`
	// Weight of a member of OneOf is 1 if nil.
	Weight *float64 `json:"weight,omitempty"`
	// Data maps the data folders of the stage to paths. Only a pipeline of this machine has it, never a bundle.
	Data map[string]string `json:"data,omitempty"`
}

// Schedule is the course of the learning rate after a linear warm-up: a name of --schedule (docs/schedules.md).
type Schedule struct {
	Name        string `json:"name"`
	WarmupSteps int    `json:"warmup_steps,omitempty"`
}

// Graph is one ONNX file of the bundle. Kind is "train", "eval" or "probe". Precision is that of the matrix products:
// "f32", or "bf16" for a training graph.
type Graph struct {
	File      string `json:"file"`
	Kind      string `json:"kind"`
	Precision string `json:"precision"`
	// Nodes counts the nodes by operator ("domain.name" for operators outside the default domain), including those of
	// functions and subgraphs. It may be absent.
	Nodes map[string]int `json:"nodes,omitempty"`
	// Player names the player whose gradients a training graph returns; empty in a bundle without players.
	Player string `json:"player,omitempty"`
}

// Baseline asks the report for the losses of two trivial predictors.
type Baseline struct {
	Metric string  `json:"metric"`
	Target string  `json:"target"`
	Loss   string  `json:"loss"`
	Delta  float64 `json:"delta,omitempty"`
}

// Cost is the cost of one training step of a bucket.
type Cost struct {
	Bucket    int     `json:"bucket"`
	BatchSize int     `json:"batch_size"`
	FLOPs     float64 `json:"flops"`
	Bytes     float64 `json:"bytes"`
}

// ParseBundle parses bundle.json. file is only used in messages. It checks the schema, that names are unique, and that
// every symbol of an input has a value in every bucket.
func ParseBundle(file string, data []byte) (*Bundle, error) {
	b := new(Bundle)
	if err := refuseFolders(data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := decode(file, bundleSchema(), data, b); err != nil {
		return nil, err
	}
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

func (b *Bundle) check() error {
	names := map[string]string{"seed": "the seed"}
	claim := func(name, what string) error {
		if had, ok := names[name]; ok {
			return fmt.Errorf("%s %q has the name of %s", what, name, had)
		}
		names[name] = what
		return nil
	}
	for _, t := range b.Inputs {
		if err := claim(t.Name, "input"); err != nil {
			return err
		}
	}
	for _, s := range b.Scalars {
		if err := claim(s.Name, "scalar"); err != nil {
			return err
		}
	}
	for _, p := range b.Parameters {
		if err := claim(p.Name, "parameter"); err != nil {
			return err
		}
		if p.Compute == BF16 && len(p.Shape) < 2 {
			return fmt.Errorf("parameters: %q has compute bf16, but is not a matrix: its shape is %v", p.Name, p.Shape)
		}
	}
	for _, s := range b.State {
		if err := claim(s.Name, "state"); err != nil {
			return err
		}
	}
	inputs := map[string]TensorSpec{}
	for _, t := range b.Inputs {
		inputs[t.Name] = t
	}
	for _, t := range b.Inputs {
		if t.Lengths != "" && inputs[t.Lengths].DType != I32 {
			return fmt.Errorf("inputs: the lengths tensor %q of %q is not an i32 input", t.Lengths, t.Name)
		}
		for i, bucket := range b.Buckets {
			if _, err := t.Shape.Resolve(bucket.Values(1)); err != nil {
				return fmt.Errorf("buckets[%d]: input %q: %w", i, t.Name, err)
			}
		}
	}
	for i := 1; i < len(b.Buckets); i++ {
		for s, n := range b.Buckets[i] {
			if n < b.Buckets[i-1][s] {
				return fmt.Errorf(
					"buckets[%d]: %s = %d is smaller than in the bucket before (%d): buckets are ascending", i, s, n,
					b.Buckets[i-1][s])
			}
		}
	}
	if err := b.checkDynamic(); err != nil {
		return fmt.Errorf("dynamic: %w", err)
	}
	if err := cmp.Or(
		b.checkColumns(), b.checkOutputs(), b.checkAdapters(), b.checkScalars(), b.checkPlayers(), b.checkInference(),
		b.checkSynthesis(), b.checkProbes(),
	); err != nil {
		return err
	}
	return CheckPipeline(b.Pipeline)
}

func (b *Bundle) checkOutputs() error {
	var loss, weight bool
	for _, t := range b.Outputs {
		switch {
		case t.Name == "loss":
			loss = true
		case t.Name == "loss_weight":
			weight = true
		case !t.IsMetric():
			return fmt.Errorf("outputs: %q is neither loss, loss_weight nor metric.<name>", t.Name)
		}
	}
	if !loss || !weight {
		return fmt.Errorf("outputs: loss and loss_weight are both needed")
	}
	return nil
}

func (b *Bundle) checkAdapters() error {
	for i, a := range b.Adapters {
		sizes := map[string][]int{}
		for _, name := range []string{a.Weight, a.A, a.B} {
			at := slices.IndexFunc(b.Parameters, func(p Parameter) bool { return p.Name == name })
			if at < 0 {
				return fmt.Errorf("adapters[%d]: %q is not a parameter", i, name)
			}
			sizes[name] = b.Parameters[at].Shape
		}
		if err := a.check(sizes[a.Weight], sizes[a.A], sizes[a.B]); err != nil {
			return fmt.Errorf("adapters[%d]: %w", i, err)
		}
	}
	return nil
}

// check returns an error if the product of the matrices does not have the shape of the weight.
func (a Adapter) check(weight, first, second []int) error {
	if len(weight) < 2 || a.Transposed() && len(weight) != 2 {
		return fmt.Errorf("%q%v is no weight of such a layer", a.Weight, weight)
	}
	outer, inner := weight[0], 1
	for _, n := range weight[1:] {
		inner *= n
	}
	if a.Transposed() {
		outer, inner = inner, outer
	}
	if len(first) != 2 || first[0] < 1 || !slices.Equal(first, []int{first[0], inner}) ||
		!slices.Equal(second, []int{outer, first[0]}) {
		return fmt.Errorf("%q%v and %q%v make no [%d, %d], as %q%v needs", a.A, first, a.B, second, outer, inner,
			a.Weight, weight)
	}
	return nil
}

// phases are the names of the host's own phases of a batch in reports.
var phases = []string{
	"decode", "transfer", "wait", "train", "optimizer", "other", "gpu_train", "gpu_optimizer", "gpu_transfer",
}

// EvalGraph returns the eval graph, or false.
func (b *Bundle) EvalGraph() (Graph, bool) {
	return b.find(func(g Graph) bool { return g.Kind == "eval" })
}

// TrainingGraph returns the training graph of a player in a precision, or false. The name of the one player of a bundle
// without players is empty.
func (b *Bundle) TrainingGraph(player string, precision DType) (Graph, bool) {
	return b.find(func(g Graph) bool {
		return g.Kind == "train" && g.Player == player && g.Precision == string(precision)
	})
}

func (b *Bundle) find(is func(Graph) bool) (Graph, bool) {
	if i := slices.IndexFunc(b.Graphs, is); i >= 0 {
		return b.Graphs[i], true
	}
	return Graph{}, false
}

// HasPrecision reports whether there is a training graph in a precision.
func (b *Bundle) HasPrecision(precision DType) bool {
	_, ok := b.TrainingGraph(b.Last().Name, precision)
	return ok
}

// Metrics returns the names of the values that a step reports beside the loss: the outputs metric.<name>, in order and
// without the prefix, and the scheduled scalars.
func (b *Bundle) Metrics() []string { return append(b.OutputMetrics(), b.Scheduled()...) }

// OutputMetrics returns the names of the outputs metric.<name>, in order and without the prefix.
func (b *Bundle) OutputMetrics() []string {
	var out []string
	for _, t := range b.Outputs {
		if name, ok := strings.CutPrefix(t.Name, metricPrefix); ok {
			out = append(out, name)
		}
	}
	return out
}
