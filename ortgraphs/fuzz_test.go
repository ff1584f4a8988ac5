package ortgraphs

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// For any content of an ONNX file, checking it terminates, with or without faults.
func FuzzCheckModel(f *testing.F) {
	for _, m := range newFixture().models {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &Bundle{Manifest: newFixture().manifest, models: map[string]*onnxpb.ModelProto{}}
		b.checkModel("training_model.onnx", data, &faults{file: "training_model.onnx"})
	})
}
