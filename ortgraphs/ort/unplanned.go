package ort

import (
	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// unplanned returns a model whose values have types, but no shapes, and the shapes that its inputs and outputs had.
func unplanned(model []byte) (bare []byte, shapes map[string]manifest.Shape, err error) {
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(model, m); err != nil {
		return nil, nil, err
	}
	if m.Graph == nil { // ONNX Runtime refuses it
		return model, nil, nil
	}
	shapes = map[string]manifest.Shape{}
	for _, v := range append(m.Graph.Input[:len(m.Graph.Input):len(m.Graph.Input)], m.Graph.Output...) {
		t := v.GetType().GetTensorType()
		if t == nil {
			continue
		}
		for _, d := range t.GetShape().GetDim() {
			size := manifest.Dim{Size: int(d.GetDimValue()), Symbol: d.GetDimParam()}
			if d.Value == nil {
				size.Size = -1
			}
			shapes[v.GetName()] = append(shapes[v.GetName()], size)
		}
		t.Shape = nil
	}
	m.Graph.ValueInfo = nil
	bare, err = proto.Marshal(m)
	return bare, shapes, err
}
