package train

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// withoutConvolver compiles programs for a machine without a library of convolutions.
type withoutConvolver struct{ fused.Compiler }

func (c withoutConvolver) Compile(sources []string) (fused.Programs, error) {
	p, err := c.Compiler.Compile(sources)
	return unconvolved{p}, err
}

type unconvolved struct{ fused.Programs }

func (unconvolved) Convolver() (*ort.Convolver, error) {
	return nil, errors.New("load cuDNN: not found")
}

// TestWithoutConvolver: without a library of convolutions, no kernel is faulty, because windows are in memory. What is
// said of the graph names each convolution, with the reason.
func TestWithoutConvolver(t *testing.T) {
	data, err := os.ReadFile("../../ortgraphs/fused/prooftest/testdata/convolutions.onnx")
	if err != nil {
		t.Fatal(err)
	}
	f := &fusedGraphs{faults: make([]map[int]error, 2)}
	for _, length := range []int{1024, 2048} {
		p, err := fused.NewPlan(
			data, map[string]int{"B": 2, "T_mel": length/256 + 1, "T_wav": length}, fused.Form{WindowBytes: 1},
		)
		if err != nil {
			t.Fatal(err)
		}
		f.plans = append(f.plans, p)
	}
	if err := f.compile(withoutConvolver{fusedtest.NewCompiler(t)}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.programs.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := f.load(); err != nil {
		t.Fatal(err)
	}
	d := f.describe()
	for bucket, prefix := range []string{"bucket 0: ", "bucket 1: "} {
		for _, what := range []string{"convolution", "gradient of what is convolved"} {
			found := false
			for _, r := range d.Refused {
				found = found ||
					strings.HasPrefix(r, prefix+what+" of [2 ") && strings.HasSuffix(r, "load cuDNN: not found")
			}
			if !found {
				t.Errorf("nothing says that a %s of bucket %d is refused: %q", what, bucket, d.Refused)
			}
		}
	}
	if len(d.Faulty) > 0 || d.Kernels != f.plans[1].Regions() || len(d.Refused) != 48 {
		t.Errorf("%d of %d regions have kernels, faulty are %q; %d convolutions are refused", d.Kernels,
			f.plans[1].Regions(), d.Faulty, len(d.Refused))
	}
}
