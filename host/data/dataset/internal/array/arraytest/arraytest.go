// Package arraytest makes the bytes of .npy files for tests.
package arraytest

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Header returns a header of version 1.0 for data of a type in NumPy's notation and a shape in Python's: "<i4", "(3,)".
func Header(descr, shape string) string {
	return Version(1, fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape))
}

// Version returns a header with a dictionary, padded as NumPy does.
func Version(major byte, dictionary string) string {
	start := 10
	if major > 1 {
		start = 12
	}
	dictionary += strings.Repeat(" ", 63-(start+len(dictionary))%64) + "\n"
	head := []byte("\x93NUMPY")
	head = append(head, major, 0)
	if major > 1 {
		return string(binary.LittleEndian.AppendUint32(head, uint32(len(dictionary)))) + dictionary
	}
	return string(binary.LittleEndian.AppendUint16(head, uint16(len(dictionary)))) + dictionary
}

// Ints returns a file with one dimension of i32.
func Ints(values ...int32) []byte {
	b := []byte(Header("<i4", fmt.Sprintf("(%d,)", len(values))))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}
