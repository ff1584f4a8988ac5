// Package onnxpb contains the generated code of onnx.proto, the file format of ONNX models, from the onnx wheel 1.23.2
// (Apache-2.0). scripts/gen-proto.sh regenerates it. onnx.proto in this folder explains types and fields.
package onnxpb
