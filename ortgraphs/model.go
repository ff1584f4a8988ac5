package ortgraphs

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// ReadModel reads an ONNX file within the limits of docs/bundle.md.
func ReadModel(path string) (*onnxpb.ModelProto, error) {
	data, err := files.Read(path, maxModel)
	if err != nil {
		return nil, err
	}
	model, err := parseModel(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return model, nil
}

func parseModel(data []byte) (*onnxpb.ModelProto, error) {
	if err := measure(data); err != nil {
		return nil, fmt.Errorf("not an ONNX file: %w", err)
	}
	model := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(data, model); err != nil {
		return nil, fmt.Errorf("not an ONNX file: %w", err)
	}
	if model.Graph == nil {
		return nil, errors.New("has no graph")
	}
	return model, nil
}
