package ortgraphs

import "testing"

// TestMadeGraphs: these graphs are made here, so nothing else says that their parts fit together.
func TestMadeGraphs(t *testing.T) {
	for name, make := range map[string]func() ([]byte, error){
		"average": Average, "choose": Choose, "weighted_sum": WeightedSum, "deviation": Deviation,
		"mean_of_ranks": MeanOfRanks, "weigh": func() ([]byte, error) { return Weigh(false) },
		"weigh_bf16": func() ([]byte, error) { return Weigh(true) },
	} {
		t.Run(name, func(t *testing.T) {
			data, err := make()
			if err != nil {
				t.Fatal(err)
			}
			checkMade(t, name, data)
		})
	}
}

func checkMade(t *testing.T, name string, data []byte) {
	t.Helper()
	model, err := parseModel(data)
	if err != nil {
		t.Fatal(err)
	}
	if model.Graph.GetName() != name {
		t.Errorf("its name is %s", model.Graph.GetName())
	}
	known := map[string]bool{}
	for _, c := range model.Graph.Initializer {
		known[c.GetName()] = true
	}
	for _, in := range model.Graph.Input {
		known[in.GetName()] = true
	}
	for _, n := range model.Graph.Node {
		for _, in := range n.Input {
			if !known[in] {
				t.Errorf("%s reads %s, which nothing gives", n.GetOpType(), in)
			}
		}
		known[n.Output[0]] = true
	}
	if len(model.Graph.Output) != 1 || !known[model.Graph.Output[0].GetName()] {
		t.Errorf("outputs %v", model.Graph.Output)
	}
}
