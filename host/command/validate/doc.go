// Package validate checks whether a run would work, in five sections: machine, placement, model, transfer and pipeline.
//
// It defines the checks, their order and their output. A preflight.Check is a value with a name, the names of the
// checks that it depends on, and a function:
//
//	sections := []validate.Section{
//		{"prerequisites", machine.Prerequisites()},
//		{"model", []preflight.Check{{Name: "model", Needs: []string{"runtime"}, Try: func(ctx context.Context) (string, error) {
//			return "on GPU 1", openModel()
//		}}}},
//		{"transfer", validate.Transfer(route, "model")},
//	}
//	r, err := validate.Try(ctx, sections, os.Stdout)
//	if failed := r.Err(); failed != nil { ... }
//
// A check is skipped unless all the checks that it depends on have passed. So one fault is reported once.
package validate
