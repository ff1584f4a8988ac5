package ort_test

import (
	"fmt"
	"log"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// A graph that adds one runs on mapped memory, with its output in place of its input. The program has called Init.
func Example() {
	s, err := ort.NewSession(ort.SessionConfig{Path: "testdata/add_one.onnx", Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(s.Inputs()[0].DType, s.Inputs()[0].Shape)

	buf, err := ort.NewBuffer(3 * manifest.F32.Size())
	if err != nil {
		log.Fatal(err)
	}
	defer buf.Close()
	x, err := ort.NewTensor(buf.Bytes(), manifest.F32, []int{3})
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()

	b, err := s.NewBinding()
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	b.BindInput("x", x)
	b.BindOutput("y", x)

	copy(ort.View[float32](x.Bytes()), []float32{1, 2, 3})
	for range 10 {
		if err := b.Run(nil); err != nil { // also the error of a failed bind
			log.Fatal(err)
		}
	}
	fmt.Println(ort.View[float32](x.Bytes()))
	// Output:
	// f32 [n]
	// [11 12 13]
}
