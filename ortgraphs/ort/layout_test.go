package ort

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	onnx "github.com/yalue/onnxruntime_go"
)

// Session.pointer, RunOptions.pointer, setStream and setDeterministic read the first field of a struct of
// onnxruntime_go. These are the fields they expect.
func TestLayoutOfForeignStructs(t *testing.T) {
	session := reflect.TypeFor[onnx.DynamicAdvancedSession]().Field(0)
	for _, tt := range []struct {
		in          reflect.Type
		field, kind string
	}{
		{reflect.TypeFor[onnx.DynamicAdvancedSession](), "s", "*onnxruntime_go.AdvancedSession"},
		{session.Type.Elem(), "ortSession", "_Ctype_struct_OrtSession"},
		{reflect.TypeFor[onnx.RunOptions](), "o", "_Ctype_struct_OrtRunOptions"},
		{reflect.TypeFor[onnx.CUDAProviderOptions](), "o", "_Ctype_struct_OrtCUDAProviderOptionsV2"},
		{reflect.TypeFor[onnx.SessionOptions](), "o", "_Ctype_struct_OrtSessionOptions"},
	} {
		f := tt.in.Field(0)
		if f.Name != tt.field || f.Offset != 0 || f.Type.Kind() != reflect.Pointer ||
			!strings.HasSuffix(f.Type.String(), tt.kind) {
			t.Errorf("%v starts with %s %v at %d, want %s %s", tt.in, f.Name, f.Type, f.Offset, tt.field, tt.kind)
		}
	}
	if n := unsafe.Sizeof(onnx.DynamicAdvancedSession{}); n != unsafe.Sizeof(uintptr(0)) {
		t.Errorf("a session has %d bytes", n)
	}
	if n := unsafe.Sizeof(onnx.RunOptions{}); n != unsafe.Sizeof(uintptr(0)) {
		t.Errorf("run options have %d bytes", n)
	}
}

// The module and this package use the same library, the version that everything was measured with.
func TestVersion(t *testing.T) {
	if v := Version(); v != onnx.GetVersion() || !strings.HasPrefix(v, "1.29.") {
		t.Errorf("this package sees version %q, onnxruntime_go %q; want 1.29", v, onnx.GetVersion())
	}
}
