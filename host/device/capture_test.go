package device

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestCapture: only a graph without findings is captured; the reason is an error where --cuda-graphs on asks for it.
func TestCapture(t *testing.T) {
	b, err := ortgraphs.Open(filepath.Join("..", "..", "ortgraphs", "testdata", "pico"), "")
	if err != nil {
		t.Fatal(err)
	}
	const file = "training_model.onnx"
	for _, mode := range []string{"auto", "on"} {
		if want, fault, err := Capture(mode, "pico", b, file); !want || fault != nil || err != nil {
			t.Errorf("%s: %t, %v, %v", mode, want, fault, err)
		}
	}
	// The mean of the targets, by a count from shapes: the host computes it, and a captured graph keeps it.
	g := b.Model(file).Graph
	g.Node = append(g.Node,
		&onnxpb.NodeProto{OpType: proto.String("Size"), Input: []string{"mel_spectrograms"}, Output: []string{"n"}},
		&onnxpb.NodeProto{OpType: proto.String("Cast"), Input: []string{"n"}, Output: []string{"count"},
			Attribute: []*onnxpb.AttributeProto{{Name: proto.String("to"), I: proto.Int64(1), Type: onnxpb.AttributeProto_INT.Enum()}}},
		&onnxpb.NodeProto{OpType: proto.String("Div"), Input: []string{"mel_spectrograms", "count"}, Output: []string{"mean"}},
	)
	if want, fault, err := Capture("off", "pico", b, file); want || fault != nil || err != nil {
		t.Errorf("off: %t, %v, %v", want, fault, err)
	}
	want, fault, err := Capture("auto", "a b", b, file)
	if want || err != nil || fault == nil || !strings.HasPrefix(fault.Error(), file+": ") || hint.Of(fault) != "xtts-host graph lint 'a b' lists all" {
		t.Errorf("auto: %t, %v, %v; hint: %s", want, fault, err, hint.Of(fault))
	}
	want, fault, err = Capture("on", "a b", b, file)
	if want || fault != nil || err == nil || !strings.HasPrefix(err.Error(), "--cuda-graphs on: "+file+": ") || hint.Of(err) == "" {
		t.Errorf("on: %t, %v, %v", want, fault, err)
	}
}
