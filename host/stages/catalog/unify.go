package catalog

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// bindings give the symbols of a stage their meaning within one instance.
type bindings map[string]binding

type binding struct {
	dim  manifest.Dim
	from string // where the meaning comes from
}

// newBindings returns the bindings that hold for every stage: B is the batch size, n_mels is that of the feature
// contract.
func newBindings(f manifest.Features) bindings {
	b := bindings{manifest.BatchSymbol: {manifest.Sym(manifest.BatchSymbol), "the batch"}}
	if f.NMels > 0 {
		b["n_mels"] = binding{manifest.Fixed(f.NMels), "the feature contract"}
	}
	return b
}

// unify gives the symbols of a port the meaning that they have in the tensor. It returns why that is impossible,
// without changing b, or "".
func (b bindings) unify(port, t manifest.TensorSpec) string {
	want := fmt.Sprintf("needs %s%s, but tensor %q is %s%s", port.DType, port.Shape, t.Name, t.DType, t.Shape)
	if port.DType != t.DType || len(port.Shape) != len(t.Shape) {
		return want
	}
	trial := maps.Clone(b)
	for i, d := range port.Shape {
		is := t.Shape[i]
		if d.Symbol == "" {
			if d != is {
				return want
			}
			continue
		}
		had, ok := trial[d.Symbol]
		if !ok {
			trial[d.Symbol] = binding{is, fmt.Sprintf("port %q", port.Name)}
		} else if had.dim != is {
			return fmt.Sprintf("%s, and %s is %s by %s", want, d.Symbol, had.dim, had.from)
		}
	}
	maps.Copy(b, trial)
	return ""
}

// apply replaces the symbols that have a meaning.
func (b bindings) apply(shape manifest.Shape) manifest.Shape {
	out := slices.Clone(shape)
	for i, d := range out {
		if had, ok := b[d.Symbol]; ok && d.Symbol != "" {
			out[i] = had.dim
		}
	}
	return out
}

// bindPorts binds the ports of an instance to available tensors, and makes its outputs available.
func (r *resolver) bindPorts(i *Instance, entry *Entry, pipeline []manifest.Step) error {
	if err := checkPorts("input", i.Stage, i.Stage.Inputs, i.Inputs); err != nil {
		return err
	}
	if err := checkPorts("output", i.Stage, i.Stage.Outputs, i.Outputs); err != nil {
		return err
	}
	if err := checkSharing(i); err != nil {
		return err
	}
	b := newBindings(r.types.Features)
	declared := "bind another tensor in the pipeline, or correct the ports in " + filepath.Join(entry.Dir,
		manifest.PluginFile)
	for _, port := range i.Stage.Inputs {
		name := i.Inputs[port.Name]
		t, ok := r.tensors[name]
		if !ok {
			return fmt.Errorf("input port %q: %s; %s", port.Name, missing(name, i.Name, pipeline), r.fitting(b, port))
		}
		if why := b.unify(port, t.spec); why != "" {
			return hint.Errorf(declared, "input port %q of stage %s %s; %s", port.Name, i.Stage.Name, why,
				r.fitting(b, port))
		}
		t.consume()
	}
	if err := r.checkLengths(i); err != nil {
		return err
	}
	// Existing tensors determine the symbols of new ones, regardless of the order of the ports.
	var fresh []manifest.TensorSpec
	for _, port := range i.Stage.Outputs {
		name := i.Outputs[port.Name]
		t, exists := r.tensors[name]
		_, edits := i.Inputs[port.Name]
		in, graph := r.graph[name]
		switch {
		case edits:
			if why := b.unify(port, t.spec); why != "" {
				return hint.Errorf(declared, "output port %q of stage %s %s", port.Name, i.Stage.Name, why)
			}
			t.maker, t.port, t.read = i.Name, port.Name, false
			continue
		case exists && t.maker == "":
			return fmt.Errorf("output port %q: tensor %q is produced by the data set", port.Name, name)
		case exists:
			return fmt.Errorf("output port %q: tensor %q is already produced by instance %q", port.Name, name, t.maker)
		case !graph:
			fresh = append(fresh, port)
			continue
		}
		if why := b.unify(port, in); why != "" {
			return hint.Errorf(declared, "output port %q of stage %s makes %s%s, but the graph input %q is %s%s",
				port.Name, i.Stage.Name, port.DType, b.apply(port.Shape), name, in.DType, in.Shape)
		}
		r.tensors[name] = &tensor{spec: in, maker: i.Name, port: port.Name}
	}
	for _, port := range fresh {
		name := i.Outputs[port.Name]
		spec := manifest.TensorSpec{Name: name, DType: port.DType, Shape: b.apply(port.Shape), Lengths: i.counts(port)}
		if symbol := r.unknownSymbol(spec.Shape); symbol != "" {
			return fmt.Errorf("output port %q makes tensor %q %s%s: not every bucket gives %s a value", port.Name, name,
				spec.DType, spec.Shape, symbol)
		}
		r.tensors[name] = &tensor{spec: spec, maker: i.Name, port: port.Name}
		r.made = append(r.made, name)
	}
	return r.checkCounts(i, pipeline)
}

// checkLengths compares the lengths tensor that each input has with the one that the instance reads for it.
func (r *resolver) checkLengths(i *Instance) error {
	for _, port := range i.Stage.Inputs {
		t := r.tensors[i.Inputs[port.Name]]
		if counts := i.Inputs[port.Lengths]; counts != "" && t.spec.Lengths != "" && counts != t.spec.Lengths {
			return fmt.Errorf("input port %q is bound to %q, but the lengths tensor of %q is %q", port.Lengths, counts,
				t.spec.Name, t.spec.Lengths)
		}
	}
	return nil
}

// checkCounts compares the lengths tensor of a new graph input with the one that its maker uses. If the maker's is its
// own tensor, which nothing else uses, the host must compare the two in every batch.
func (r *resolver) checkCounts(i *Instance, pipeline []manifest.Step) error {
	for _, port := range i.Stage.Outputs {
		name, counts := i.Outputs[port.Name], i.counts(port)
		in, graph := r.graph[name]
		_, edits := i.Inputs[port.Name]
		if edits || !graph || counts == "" || in.Lengths == "" || counts == in.Lengths {
			continue
		}
		err := fmt.Errorf("output port %q is bound to %q, but the lengths tensor of graph input %q is %q", port.Lengths,
			counts, name, in.Lengths)
		_, known := r.graph[counts]
		if _, own := i.Outputs[port.Lengths]; !own || known {
			return err
		}
		if _, ok := r.tensors[in.Lengths]; !ok {
			return fmt.Errorf("%w; %s", err, missing(in.Lengths, i.Name, pipeline))
		}
		if i.Recounts == nil {
			i.Recounts = map[string]string{}
		}
		i.Recounts[counts] = in.Lengths
		r.tensors[counts].consume()
	}
	return nil
}

// counts returns the lengths tensor of an output port, or "".
func (i *Instance) counts(port manifest.TensorSpec) string {
	if name, ok := i.Outputs[port.Lengths]; ok {
		return name
	}
	return i.Inputs[port.Lengths]
}

// checkPorts compares the ports that an instance binds with the ports of its stage.
func checkPorts(side string, s manifest.Stage, ports []manifest.TensorSpec, bound map[string]string) error {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = p.Name
	}
	for _, name := range slices.Sorted(maps.Keys(bound)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("stage %s has no %s port %q; it has %s", s.Name, side, name, list(names))
		}
	}
	for _, p := range ports {
		if bound[p.Name] == "" {
			return fmt.Errorf("%s port %q %s%s of stage %s is not bound to a tensor", side, p.Name, p.DType, p.Shape,
				s.Name)
		}
	}
	return nil
}

// checkSharing refuses two ports that are bound to one tensor if one of them writes it, and a port that is both input
// and output but bound to two tensors.
func checkSharing(i *Instance) error {
	writer := map[string]string{}
	for _, port := range i.Stage.Outputs {
		name := i.Outputs[port.Name]
		if in, ok := i.Inputs[port.Name]; ok && in != name {
			return fmt.Errorf("port %q is both input and output and must be bound to one tensor, not to %q and %q",
				port.Name, in, name)
		}
		if had, ok := writer[name]; ok {
			return fmt.Errorf("output ports %q and %q are both bound to %q", had, port.Name, name)
		}
		writer[name] = port.Name
	}
	for _, port := range i.Stage.Inputs {
		name := i.Inputs[port.Name]
		if w, ok := writer[name]; ok && w != port.Name {
			return fmt.Errorf("input port %q and output port %q are both bound to %q", port.Name, w, name)
		}
	}
	return nil
}

// missing says why a tensor that instance needs is not available.
func missing(name, instance string, pipeline []manifest.Step) string {
	for _, s := range pipeline {
		for _, made := range s.Outputs {
			if made == name && s.Name != instance {
				return fmt.Sprintf("tensor %q is made only later, by instance %q", name, s.Name)
			}
		}
	}
	return fmt.Sprintf("there is no tensor %q", name)
}

// fitting lists the available tensors to which the port could be bound.
func (r *resolver) fitting(b bindings, port manifest.TensorSpec) string {
	var fit []string
	for _, name := range slices.Sorted(maps.Keys(r.tensors)) {
		if maps.Clone(b).unify(port, r.tensors[name].spec) == "" {
			fit = append(fit, name)
		}
	}
	return "tensors that fit: " + list(fit)
}
