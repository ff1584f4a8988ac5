package ortgraphs

import "testing"

// TestAverage: the graph is made here, so nothing else says that its parts fit together.
func TestAverage(t *testing.T) {
	data, err := Average()
	if err != nil {
		t.Fatal(err)
	}
	model, err := parseModel(data)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
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
