package lint_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestOptimizerGraphsRunOnTheGPU: no optimizer graph has a node on the CPU, in any form.
func TestOptimizerGraphsRunOnTheGPU(t *testing.T) {
	trials := []shapes.Sizes{{"B": 3, "M": 20, "N": 30}, {"B": 1, "M": 5, "N": 7}}
	for _, name := range []string{
		"accumulate", "squares", "norm", "adamw", "sgd", "lion", "muon_wide", "muon_tall", "adafactor",
		"adafactor_vector",
	} {
		for _, bf16 := range []bool{false, true} {
			data, err := ortgraphs.OptimizerBF16(name, bf16 && name != "norm",
				bf16 && name != "accumulate" && name != "squares" && name != "norm")
			if err != nil {
				t.Fatal(err)
			}
			model := new(onnxpb.ModelProto)
			if err := proto.Unmarshal(data, model); err != nil {
				t.Fatal(err)
			}
			for _, f := range lint.Check(model, trials) {
				t.Errorf("%s, bf16 %v: %s", name, bf16, f)
			}
		}
	}
}
