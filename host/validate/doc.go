// Package validate finds out whether a run would work before it is begun, in five sections: what the machine has, where the run is to be
// placed, whether the model can be made and computes, whether batches arrive as they were sent, and whether all of it works together.
//
// It knows what is to be checked, in which order, and how it is reported. A Check is a value with a name, the
// names of the checks that it depends on, and a function:
//
//	sections := []validate.Section{
//		{"prerequisites", machine.Prerequisites()},
//		{"model", []validate.Check{{Name: "model", Needs: []string{"runtime"}, Try: func(ctx context.Context) (string, error) {
//			return "on GPU 1", openModel()
//		}}}},
//		{"transfer", validate.Transfer(route, "model")},
//	}
//	r, err := validate.Try(ctx, sections, os.Stdout)
//	if cross := r.Err(); cross != nil { ... }
//
// A check whose needs did not all pass is not tried: one fault is one cross, not ten.
package validate
