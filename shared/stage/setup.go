package stage

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// setup is a checked ConfigureRequest, without the instances.
type setup struct {
	layouts     []ring.Layout
	features    manifest.Features
	files       map[string]string
	device      string
	memoryLimit uint64
}

func readSetup(req *stagepb.ConfigureRequest) (*setup, error) {
	s := &setup{files: req.Files, device: req.DeviceUuid, memoryLimit: req.MemoryLimit}
	if req.FeaturesJson != "" {
		if err := json.Unmarshal([]byte(req.FeaturesJson), &s.features); err != nil {
			return nil, fmt.Errorf("feature contract: %w", err)
		}
	}
	if len(req.Layouts) == 0 {
		return nil, fmt.Errorf("no layouts")
	}
	for i, l := range req.Layouts {
		layout, err := readLayout(l)
		if err != nil {
			return nil, fmt.Errorf("layout %d: %w", i, err)
		}
		s.layouts = append(s.layouts, layout)
	}
	return s, nil
}

// readLayout checks what the views of a Batch require: aligned offsets, and sizes that do not overflow.
func readLayout(l *stagepb.Layout) (ring.Layout, error) {
	var out ring.Layout
	for _, t := range l.Tensors {
		rt := ring.Tensor{Name: t.Name, DType: manifest.DType(t.Dtype), Pad: t.Pad, Offset: int(t.Offset)}
		size := uint64(rt.DType.Size())
		if size == 0 {
			return out, fmt.Errorf("tensor %q has the unknown type %q", t.Name, t.Dtype)
		}
		for _, d := range t.Shape {
			if d < 1 || d > math.MaxInt32 || size > math.MaxInt32*uint64(64)/d {
				return out, fmt.Errorf("tensor %q has the shape %v", t.Name, t.Shape)
			}
			size *= d
			rt.Shape = append(rt.Shape, int(d))
		}
		if t.Offset%ring.Align != 0 || t.Offset > math.MaxInt64/2 {
			return out, fmt.Errorf("tensor %q is at offset %d, not aligned to %d", t.Name, t.Offset, ring.Align)
		}
		if _, twice := out.Find(t.Name); twice {
			return out, fmt.Errorf("two tensors are named %q", t.Name)
		}
		out.Tensors = append(out.Tensors, rt)
		out.Size = max(out.Size, rt.Offset+rt.Bytes()+ring.GuardSize)
	}
	return out, nil
}

// bind returns the tensors of an instance's ports in every bucket.
func (s *setup) bind(in *stagepb.Instance) ([]ports, error) {
	names := maps.Clone(in.Inputs)
	if names == nil {
		names = map[string]string{}
	}
	for _, port := range slices.Sorted(maps.Keys(in.Outputs)) {
		if tensor, both := names[port]; both && tensor != in.Outputs[port] {
			return nil, fmt.Errorf("port %q is bound to %q as an input and to %q as an output",
				port, tensor, in.Outputs[port])
		}
		names[port] = in.Outputs[port]
	}
	buckets := make([]ports, len(s.layouts))
	for i := range s.layouts {
		buckets[i] = ports{}
		for _, port := range slices.Sorted(maps.Keys(names)) {
			t, ok := s.layouts[i].Find(names[port])
			if !ok {
				return nil, fmt.Errorf("port %q: bucket %d has no tensor %q", port, i, names[port])
			}
			buckets[i][port] = t
		}
	}
	return buckets, nil
}
