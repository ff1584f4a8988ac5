package variant

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"

	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// constant is a tensor with one value everywhere.
func constant(name string, shape []int, value float32) safetensors.Tensor {
	elements := 1
	for _, n := range shape {
		elements *= n
	}
	var data []byte
	for range elements {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value))
	}
	return safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: data}
}

// store adds tensors to a file of weights.
func store(file string, more ...safetensors.Tensor) error {
	f, err := safetensors.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var all []safetensors.Tensor
	for _, info := range f.Tensors() {
		data := make([]byte, info.Bytes)
		if err := f.Read(info.Name, data); err != nil {
			return err
		}
		all = append(all, safetensors.Tensor{Name: info.Name, DType: info.DType, Shape: info.Shape, Data: data})
	}
	var out bytes.Buffer
	if err := safetensors.Write(&out, append(all, more...), nil); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o666)
}
