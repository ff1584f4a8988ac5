package ortgraphs

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// Limits of an ONNX file. Two bytes of it can be a message that takes 300 bytes in memory, so its fields are counted
// instead of its size. Training graphs of thousands of nodes need a tenth of these limits.
const (
	maxFields = 1_000_000
	maxNested = 100 // messages; a graph inside a node's attribute is three levels
)

// measure walks over an ONNX file without keeping anything, and refuses a file that would exhaust memory.
func measure(data []byte) error {
	m := meter{left: maxFields}
	return m.walk(data, (*onnxpb.ModelProto)(nil).ProtoReflect().Descriptor(), maxNested)
}

type meter struct{ left int }

func (m *meter) walk(data []byte, d protoreflect.MessageDescriptor, depth int) error {
	if depth == 0 {
		return fmt.Errorf("messages nested deeper than %d", maxNested)
	}
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, wire, data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		value := data[:n]
		data = data[n:]
		m.left--
		if field := d.Fields().ByNumber(number); field != nil && wire == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(value)
			switch field.Kind() {
			case protoreflect.MessageKind:
				if err := m.walk(content, field.Message(), depth-1); err != nil {
					return err
				}
			case protoreflect.StringKind, protoreflect.BytesKind:
			default: // packed numbers: a byte becomes 8
				m.left -= len(content) / 16
			}
		}
		if m.left < 0 {
			return errTooManyFields
		}
	}
	return nil
}

var errTooManyFields = fmt.Errorf("more than %d fields", maxFields)
