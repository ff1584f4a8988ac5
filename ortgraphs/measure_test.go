package ortgraphs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// field encodes a field of a message with this content.
func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// Numbers of fields: onnx.proto. ModelProto.graph 7, functions 25; GraphProto.node 1, initializer 5;
// NodeProto.attribute 5; AttributeProto.g 6, ints 8 (packed here).
func TestMeasure(t *testing.T) {
	nested := func(graphs int) []byte {
		var graph []byte
		for range graphs {
			graph = field(1, field(5, field(6, graph)))
		}
		return field(7, graph)
	}
	for name, c := range map[string]struct {
		data []byte
		want string // in the error; empty for none
	}{
		"empty":             {nil, ""},
		"half a million":    {bytes.Repeat(field(25, nil), maxFields/2), ""},
		"too many messages": {bytes.Repeat(field(25, nil), maxFields+1), "more than 1000000 fields"},
		"too many inside":   {field(7, bytes.Repeat(field(1, nil), maxFields+1)), "more than 1000000 fields"},
		"too many numbers": {
			field(7, field(1, field(5, field(8, make([]byte, 17*maxFields))))), "more than 1000000 fields",
		},
		"large constant": {field(7, field(5, field(9, make([]byte, 17*maxFields)))), ""},
		"32 graphs deep": {nested(32), ""},
		"40 graphs deep": {nested(40), "nested deeper than 100"},
		"cut":            {field(7, []byte{1, 2, 3})[:3], "unexpected EOF"},
		"length of 2^62": {
			protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.BytesType), 1<<62), "unexpected EOF",
		},
	} {
		err := measure(c.data)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The graphs of this repository are far below the limits.
func TestMeasureHasRoom(t *testing.T) {
	for _, name := range Builtins() {
		data, err := builtins.ReadFile("builtin/" + name + "/training_model.onnx")
		if err != nil {
			t.Fatal(err)
		}
		if 20*len(data) > maxModel || measure(bytes.Repeat(data, 20)) != nil { // repeated messages are merged
			t.Errorf("%s: twenty times its graph is refused", name)
		}
	}
}

// A file that is not regular, or too large, is refused without waiting for it, for every file of the bundle.
func TestLoadDoesNotHang(t *testing.T) {
	for _, name := range []string{ManifestFile, WeightsFile, "training_model.onnx", "tokenizer.json"} {
		for what, put := range map[string]func(path string) error{
			"not a regular file": func(path string) error { return syscall.Mkfifo(path, 0o666) },
			"not a regular":      func(path string) error { return os.Symlink("/dev/zero", path) },
			"more than the limit": func(path string) error {
				return errors.Join(os.WriteFile(path, nil, 0o666), os.Truncate(path, 1<<40)) // a hole
			},
		} {
			f := newFixture()
			f.files["tokenizer.json"] = []byte("{}")
			dir := f.write(t)
			path := filepath.Join(dir, name)
			os.Remove(path)
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v, want %q", name, err, what)
			}
		}
	}
}
