// Package safetensors reads and writes safetensors files: the initial weights of a bundle and the checkpoints.
//
// A file consists of a JSON header (names, types, shapes, offsets) and the bytes of the tensors, little-endian, without
// gaps:
//
//	f, err := safetensors.Open("params.safetensors")
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	for _, t := range f.Tensors() {
//		if err := f.Read(t.Name, arena[t.Name]); err != nil { // without a copy in between
//			return err
//		}
//	}
//
// The package wraps github.com/nlpodyssey/safetensors, which implements the grammar of the header and the layout of the
// Python library. It adds three things, because weights are large and come from untrusted sources: it reads a file
// tensor by tensor, while the library needs the whole file in memory; it limits the header by the file's size before it
// allocates; and it refuses duplicate names, for which the library uses the last one.
package safetensors
