// Package lint finds, without a GPU, what makes a training graph slow, wrong or not reproducible on a GPU:
//
//	findings := lint.Check(model, lint.Trials(bundle.Manifest))
//	for _, f := range findings { fmt.Println(f) }
//
// It derives the shapes of the graph ([shapes.Infer]) and the placement of each node by ONNX Runtime's CUDA provider. A
// graph that passes has
//
//   - no node that would run on the CPU, and no transfer between the devices within a step;
//   - no wait of the host for the device, so a step is launched while the previous one runs;
//   - the same numbers in every run;
//   - no dimension of the example that it was exported with;
//   - nothing that breaks the capture of a step as a CUDA graph, or its replay for several batch shapes.
//
// ONNX Runtime's own optimizer can introduce such nodes, so check the graph that it saves too.
package lint
