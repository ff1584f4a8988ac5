package ortgraphs

import (
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// ReadModel reads an ONNX file.
func ReadModel(path string) (*onnxpb.ModelProto, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxModel {
		return nil, fmt.Errorf("%s: %d bytes: an ONNX file has at most 2 GiB", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	model := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(data, model); err != nil {
		return nil, fmt.Errorf("%s: not an ONNX file: %w", path, err)
	}
	if model.Graph == nil {
		return nil, fmt.Errorf("%s: has no graph", path)
	}
	return model, nil
}
