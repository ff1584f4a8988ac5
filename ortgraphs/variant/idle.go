package variant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// IdleParameter is the parameter of Idle.
const IdleParameter = "idle"

// Idle adds a parameter of ones that changes nothing and whose gradients are 0, whatever its values are. Only the
// weight decay moves it.
func Idle(dir string, m *manifest.Bundle) error {
	shape := []int{1}
	m.Parameters = append(m.Parameters, manifest.Parameter{Name: IdleParameter, Shape: shape, Decay: true})
	i := slices.IndexFunc(m.Graphs, func(g manifest.Graph) bool { return g.Kind == "train" })
	if i < 0 {
		return errors.New("it has no training graph")
	}
	m.Graphs[i].Nodes = nil
	file := filepath.Join(dir, m.Graphs[i].File)
	if err := rewriteGraph(file, file, func(g *onnxpb.GraphProto) {
		const never, zero, grad = "idle.never", "idle.zero", "grad." + IdleParameter
		g.Input = append(g.Input, float(IdleParameter, shape...))
		g.Node = append(g.Node, node("Less", never, IdleParameter, IdleParameter),
			node("Where", grad, never, IdleParameter, zero))
		g.Initializer = append(g.Initializer, scalar(zero, 0))
		g.Output = append(g.Output, float(grad, shape...))
	}); err != nil {
		return err
	}
	return store(filepath.Join(dir, ortgraphs.WeightsFile), constant(IdleParameter, shape, 1))
}

// Poisoned sets the first value of a parameter.
func Poisoned(name string, value float32) Change {
	return func(dir string, _ *manifest.Bundle) error {
		path := filepath.Join(dir, ortgraphs.WeightsFile)
		f, err := safetensors.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, ok := f.Tensor(name)
		if !ok {
			return fmt.Errorf("it has no parameter %s", name)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(data[info.Offset:], math.Float32bits(value))
		return os.WriteFile(path, data, 0o666)
	}
}
