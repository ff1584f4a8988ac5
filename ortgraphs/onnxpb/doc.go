// Package onnxpb is the generated code of onnx.proto, the file format of ONNX models, as the onnx wheel 1.23.2
// ships it (Apache-2.0). scripts/gen-proto.sh regenerates it. Types and fields are explained in onnx.proto beside this file.
package onnxpb
