#!/bin/sh
# gen.sh PYTHON: generates onnx.pb.go from the onnx.proto that the onnx wheel ships.
# PYTHON has onnx==1.23.2 and grpcio-tools; protoc-gen-go v1.36.12 is in PATH.
set -eu
python=$1
cd "$(dirname "$0")"
cp "$("$python" -c 'import onnx, os; print(os.path.dirname(onnx.__file__))')/onnx.proto" .
"$python" -m grpc_tools.protoc -I . --go_out=. --go_opt=paths=source_relative \
	--go_opt=Monnx.proto=github.com/xtts-host/xtts-host/ortgraphs/onnxpb onnx.proto
