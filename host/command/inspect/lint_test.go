package inspect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// TestLint plants a node into a good bundle that the host must wait for. ONNX Runtime keeps it, and it is reported
// once. Fusing removes it, because nothing reads what it computes.
func TestLint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "planted")
	if err := os.CopyFS(dir, os.DirFS("../../../ortgraphs/testdata/pico")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "training_model.onnx")
	model, err := ortgraphs.ReadModel(file)
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	model.Graph.Node = append(model.Graph.Node, &onnxpb.NodeProto{
		OpType: proto.String("NonZero"), Name: proto.String("find"), Input: []string{"mel_spectrograms"},
		Output: []string{"found"},
	})
	data, err := proto.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := func(b []byte) []byte { h := sha256.Sum256(b); return []byte(hex.EncodeToString(h[:])) }
	manifest = bytes.Replace(manifest, sum(was), sum(data), 1)
	manifest = bytes.Replace(manifest, []byte(`"nodes": {`), []byte(`"nodes": {"NonZero": 1, `), 1)
	if err := os.WriteFile(filepath.Join(dir, "bundle.json"), manifest, 0o666); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = Lint(&out, dir, t.TempDir(), "", false)
	if err == nil || exit.Code(err) != 2 || !strings.HasSuffix(err.Error(), "planted: 1 finding") ||
		exit.Hint(err) == "" {
		t.Errorf("exit status %d: %v", exit.Code(err), err)
	}
	want := "host-sync           node find (NonZero): the shape of its output depends on the data, so the host must " +
		"read it\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("it says\n%s\nwant in it\n%s", &out, want)
	}
	if !regexp.MustCompile(`(?m)^training_model\.onnx as fused on a GPU: \d+ nodes, 0 findings$`).MatchString(
		out.String(),
	) {
		t.Errorf("it says\n%s\nof the fused graph", &out)
	}
}
