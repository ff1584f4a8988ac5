// Package safetensors reads and writes safetensors files: the initial weights of a bundle and the checkpoints.
//
// A file is a JSON header (names, types, shapes, places) and the tensors' bytes, little endian, back to back:
//
//	f, err := safetensors.Open("params.safetensors")
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	for _, t := range f.Tensors() {
//		if err := f.Read(t.Name, arena[t.Name]); err != nil { // straight into its place
//			return err
//		}
//	}
//
// The package wraps github.com/nlpodyssey/safetensors, which knows the header's grammar and the layout that the
// Python library writes. Three things are ours, because weights are large and come from strangers: a file is
// read in place, tensor by tensor, where the library wants all of it in memory; the header is bounded by the
// file's size before anything is allocated; and names that stand twice are refused, where the library lets the
// last one win.
package safetensors
