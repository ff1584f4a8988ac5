package manifest

import (
	"fmt"
	"slices"
	"unicode"
)

// The names of the inference graphs that speak, and of their tensors that the host knows.
const (
	GraphConditioningMel = "conditioning_mel"
	GraphSpeaker         = "speaker"
	GraphConditioning    = "conditioning"
	GraphPrefill         = "prefill"
	GraphStep            = "step"
	GraphVocoder         = "vocoder"

	TensorWaveform        = "waveform"
	TensorWaveformLengths = "waveform_lengths"
	TensorVoice           = "voice"
	TensorText            = "tokens"
	TensorTextLengths     = "token_lengths"
	TensorCode            = "code"
	TensorPosition        = "position"
	TensorLogits          = "logits"
	TensorLatent          = "latent"
	TensorLatents         = "latents"
	TensorFrames          = "frames"
	TensorStop            = "stop"

	TensorConditioningMel     = "conditioning_mel"
	TensorConditioningLengths = "conditioning_lengths"
)

// The numbers that graphs have in common: the number of codes, the size of a latent, the bands of a frame, and the
// frames of a run.
const (
	codesDim = "codes"
	widthDim = "width"
	bandsDim = "bands"
	runDim   = "run"
)

// part is a graph that speaks, with the tensors that have a fixed name. A symbol in lower-case letters is a number, the
// same one in all graphs. A tensor without a shape is f32 and has any fixed sizes after its rows: the mean of several
// is taken. may is what a graph can take, and need not.
type part struct {
	name, kind          string
	optional            bool
	takes, may, returns []TensorSpec
}

// speakingFrames are the graphs of a model that predicts frames.
var speakingFrames = []part{
	{
		name: GraphConditioning, kind: InferenceDecode, optional: true,
		takes: []TensorSpec{spec(TensorConditioningMel, F32, "B", "T", bandsDim), spec(TensorConditioningLengths, I32,
			"B")},
		returns: []TensorSpec{spec(TensorVoice, F32)},
	},
	{
		name: GraphPrefill, kind: InferenceDecode,
		takes:   []TensorSpec{spec(TensorText, I32, "B", "T"), spec(TensorTextLengths, I32, "B")},
		may:     []TensorSpec{spec(TensorVoice, F32)},
		returns: []TensorSpec{spec(TensorFrames, F32, "B", runDim, bandsDim), spec(TensorStop, F32, "B")},
	},
	{
		name: GraphStep, kind: InferenceDecode,
		may:     []TensorSpec{spec(TensorPosition, I32, "B")},
		returns: []TensorSpec{spec(TensorFrames, F32, "B", runDim, bandsDim), spec(TensorStop, F32, "B")},
	},
	{
		name: GraphVocoder, kind: InferenceVocoder, optional: true,
		takes:   []TensorSpec{spec(TensorFrames, F32, "B", "T", bandsDim)},
		returns: []TensorSpec{spec(TensorWaveform, F32, "B", "T")},
	},
}

// speakingCodes are the graphs of a model that chooses codes.
var speakingCodes = []part{
	{
		name: GraphConditioningMel, kind: InferenceStage,
		takes: []TensorSpec{spec(TensorWaveform, F32, "B", "T"), spec(TensorWaveformLengths, I32, "B")},
	},
	{
		name: GraphSpeaker, kind: InferenceStage,
		takes:   []TensorSpec{spec(TensorWaveform, F32, "B", "T")},
		may:     []TensorSpec{spec(TensorWaveformLengths, I32, "B")},
		returns: []TensorSpec{spec(GraphSpeaker, F32)},
	},
	{name: GraphConditioning, kind: InferenceDecode, returns: []TensorSpec{spec(TensorVoice, F32)}},
	{
		name: GraphPrefill, kind: InferenceDecode,
		takes: []TensorSpec{spec(TensorVoice, F32), spec(TensorText, I32, "B", "T"), spec(TensorTextLengths, I32,
			"B")},
		returns: []TensorSpec{spec(TensorLogits, F32, "B", codesDim), spec(TensorLatent, F32, "B", widthDim)},
	},
	{
		name: GraphStep, kind: InferenceDecode,
		takes:   []TensorSpec{spec(TensorCode, I32, "B"), spec(TensorPosition, I32, "B")},
		returns: []TensorSpec{spec(TensorLogits, F32, "B", codesDim), spec(TensorLatent, F32, "B", widthDim)},
	},
	{
		name: GraphVocoder, kind: InferenceVocoder,
		takes:   []TensorSpec{spec(TensorLatents, F32, "B", "T", widthDim), spec(GraphSpeaker, F32)},
		returns: []TensorSpec{spec(TensorWaveform, F32, "B", "T")},
	},
}

func spec(name string, dtype DType, symbols ...string) TensorSpec {
	t := TensorSpec{Name: name, DType: dtype}
	for _, s := range symbols {
		t.Shape = append(t.Shape, Sym(s))
	}
	return t
}

// parts are the graphs of a kind of model.
func (s *Synthesis) parts() []part {
	if s.Frames != nil {
		return speakingFrames
	}
	return speakingCodes
}

// Speaks reports whether the bundle has an inference graph of that name, and speaks with it.
func (b *Bundle) Speaks(graph string) bool {
	_, ok := b.InferenceGraph(graph)
	return ok && b.Synthesis != nil &&
		slices.ContainsFunc(b.Synthesis.parts(), func(p part) bool { return p.name == graph })
}

// speech is the graphs of a bundle that speak, by name, and the numbers that they have in common.
type speech struct {
	graphs  map[string]InferenceGraph
	numbers map[string]common
}

// common is a number, and the tensor that it was found in first.
type common struct {
	value int
	of    string
}

// speech checks that the graphs that speak are there, with tensors of the right types, and that what one returns fits
// what the next one takes.
func (b *Bundle) speech() (speech, error) {
	s := speech{map[string]InferenceGraph{}, map[string]common{}}
	for _, want := range b.Synthesis.parts() {
		g, ok := b.InferenceGraph(want.name)
		if !ok && want.optional {
			continue
		}
		if !ok || g.Kind != want.kind {
			return s, fmt.Errorf("there is no inference graph %s of kind %s", want.name, want.kind)
		}
		s.graphs[g.Name] = g
		for _, t := range want.takes {
			if err := s.has(g, "input", g.Inputs, t); err != nil {
				return s, err
			}
		}
		for _, t := range want.may {
			if names(g.Inputs, t.Name) {
				if err := s.has(g, "input", g.Inputs, t); err != nil {
					return s, err
				}
			}
		}
		for _, t := range want.returns {
			if err := s.has(g, "output", g.Outputs, t); err != nil {
				return s, err
			}
		}
		if err := s.given(g, want); err != nil {
			return s, err
		}
	}
	return s, s.flows()
}

// given checks that a graph takes nothing that no one gives it. What step takes besides comes from the run before it,
// and what conditioning takes may come from conditioning_mel.
func (s *speech) given(g InferenceGraph, want part) error {
	if g.Name == GraphStep || len(want.takes) == 0 {
		return nil
	}
	for _, in := range g.Inputs {
		if !names(want.takes, in.Name) && !names(want.may, in.Name) {
			return fmt.Errorf("nothing gives the inference graph %s its input %q", g.Name, in.Name)
		}
	}
	return nil
}

// has checks that a graph has a tensor of that name, type and shape.
func (s *speech) has(g InferenceGraph, what string, list []TensorSpec, want TensorSpec) error {
	i := slices.IndexFunc(list, func(t TensorSpec) bool { return t.Name == want.Name })
	if i < 0 {
		return fmt.Errorf("the inference graph %s has no %s %q", g.Name, what, want.Name)
	}
	t := list[i]
	if want.Shape == nil {
		if t.DType != want.DType || len(t.Shape) == 0 ||
			slices.ContainsFunc(t.Shape[1:], func(d Dim) bool { return d.Symbol != "" }) {
			return fmt.Errorf("the %s %s of the inference graph %s is not %s with rows and then fixed sizes", what, t,
				g.Name, want.DType)
		}
		return nil
	}
	fits := t.DType == want.DType && len(t.Shape) == len(want.Shape)
	for j := 0; fits && j < len(want.Shape); j++ {
		fits = t.Shape[j].like(want.Shape[j].Symbol)
	}
	if !fits {
		return fmt.Errorf("the %s %s of the inference graph %s is not %s", what, t, g.Name, want)
	}
	for j, d := range want.Shape {
		if !numeric(d.Symbol) {
			continue
		}
		place := t.Name + " of " + g.Name
		if first, ok := s.numbers[d.Symbol]; !ok {
			s.numbers[d.Symbol] = common{t.Shape[j].Size, place}
		} else if first.value != t.Shape[j].Size {
			return fmt.Errorf("%s has %s = %d, and %s has %d", place, d.Symbol, t.Shape[j].Size, first.of, first.value)
		}
	}
	return nil
}

// numeric reports whether a symbol of the table is a number of the bundle.
func numeric(symbol string) bool { return unicode.IsLower(rune(symbol[0])) }

// like reports whether a dimension is what a symbol of the table says: any number of rows, or one; any length; a
// number.
func (d Dim) like(symbol string) bool {
	switch {
	case symbol == BatchSymbol:
		return d.Symbol != "" || d.Size == 1
	case numeric(symbol):
		return d.Symbol == ""
	}
	return d.Symbol != ""
}

// flow is a tensor that one graph returns and another takes.
type flow struct{ from, output, to, input string }

// flows checks the tensors between graphs.
func (s *speech) flows() error {
	step, prefill := s.graphs[GraphStep], s.graphs[GraphPrefill]
	var given []flow
	_, voiced := s.graphs[GraphConditioning]
	if takes := names(prefill.Inputs, TensorVoice); takes && !voiced {
		return fmt.Errorf("nothing gives the inference graph %s its input %q: there is no %s", GraphPrefill,
			TensorVoice, GraphConditioning)
	} else if voiced && !takes {
		return fmt.Errorf("the inference graph %s has no input %q", GraphPrefill, TensorVoice)
	}
	if voiced {
		given = append(given, flow{GraphConditioning, TensorVoice, GraphPrefill, TensorVoice})
	}
	if _, ok := s.graphs[GraphSpeaker]; ok {
		given = append(given, flow{GraphSpeaker, GraphSpeaker, GraphVocoder, GraphSpeaker})
	}
	if _, ok := s.graphs[GraphConditioningMel]; ok {
		for _, in := range s.graphs[GraphConditioning].Inputs {
			given = append(given, flow{GraphConditioningMel, in.Name, GraphConditioning, in.Name})
		}
	}
	for _, in := range step.Inputs {
		if in.Name == TensorCode || in.Name == TensorPosition {
			continue
		}
		source := step.Source(in.Name)
		given = append(given, flow{GraphPrefill, source, GraphStep, in.Name})
		if source != in.Name {
			given = append(given, flow{GraphStep, source, GraphStep, in.Name})
		}
	}
	sizes := map[string]size{}
	for _, f := range given {
		if err := s.flow(f, sizes); err != nil {
			return err
		}
	}
	return nil
}

// size is what a symbol of a graph stands for, and the tensor that says so.
type size struct {
	dim    Dim
	output string
}

// flow checks that what a graph returns is what another one takes. sizes has the symbols that were seen, after the
// names of both graphs: equal symbols are equal sizes.
func (s *speech) flow(f flow, sizes map[string]size) error {
	from, to := s.graphs[f.from], s.graphs[f.to]
	in, _ := to.Tensor(f.input)
	i := slices.IndexFunc(from.Outputs, func(t TensorSpec) bool { return t.Name == f.output })
	if i < 0 && f.output != f.input {
		return fmt.Errorf("the input %q of %s is no output of %s: %q would be", f.input, f.to, f.from, f.output)
	}
	if i < 0 {
		return fmt.Errorf("the input %q of %s is no output of %s", f.input, f.to, f.from)
	}
	out := from.Outputs[i]
	unfit := fmt.Errorf("%s returns %s, and %s takes %s", f.from, out, f.to, in)
	if out.DType != in.DType || len(out.Shape) != len(in.Shape) {
		return unfit
	}
	for j, want := range in.Shape {
		made := out.Shape[j]
		switch {
		case j == 0 && made.like(BatchSymbol) && want.like(BatchSymbol): // one row
		case want.Symbol == "" && made != want:
			return unfit
		case want.Symbol != "":
			key := f.from + " " + f.to + " " + want.Symbol
			if before, ok := sizes[key]; !ok {
				sizes[key] = size{made, f.output}
			} else if before.dim != made {
				return fmt.Errorf("%s of %s is two sizes: %s of %s in %q, and %s in %q", want, f.to, before.dim, f.from,
					before.output, made, f.output)
			}
		}
	}
	return nil
}

func names(list []TensorSpec, name string) bool {
	return slices.ContainsFunc(list, func(t TensorSpec) bool { return t.Name == name })
}

// Takes reports whether the one who runs the graph gives it an input of that name.
func (g *InferenceGraph) Takes(name string) bool { return names(g.Inputs, name) }

// Source returns the output that an input takes in the next run: the one that feeds it, or the one of its name.
func (g *InferenceGraph) Source(input string) string {
	for _, t := range g.Outputs {
		if t.Feeds == input {
			return t.Name
		}
	}
	return input
}
