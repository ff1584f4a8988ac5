package lint_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestOptimizerGraphsRunOnTheGPU: no optimizer graph has a node on the CPU, in any form.
func TestOptimizerGraphsRunOnTheGPU(t *testing.T) {
	check := func(name string, bf16 bool, data []byte, err error) {
		model := new(onnxpb.ModelProto)
		if err := errors.Join(err, proto.Unmarshal(data, model)); err != nil {
			t.Fatal(err)
		}
		for _, f := range lint.Check(model, []shapes.Sizes{{"B": 3, "M": 20, "N": 30}, {"B": 1, "M": 5, "N": 7}}) {
			t.Errorf("%s, bf16 %v: %s", name, bf16, f)
		}
	}
	for _, name := range []string{
		"accumulate", "squares", "norm", "adamw", "sgd", "lion", "muon_wide", "muon_tall", "adafactor",
		"adafactor_vector",
	} {
		for _, bf16 := range []bool{false, true} {
			data, err := ortgraphs.OptimizerBF16(name, bf16 && name != "norm",
				bf16 && name != "accumulate" && name != "squares" && name != "norm")
			check(name, bf16, data, err)
		}
	}
	for _, bf16 := range []bool{false, true} {
		data, err := ortgraphs.Weigh(bf16)
		check("weigh", bf16, data, err)
	}
}
