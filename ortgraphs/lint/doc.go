// Package lint finds what makes a training graph slow, wrong or not reproducible on a GPU, before it runs on one:
//
//	findings := lint.Check(model, lint.Trials(bundle.Manifest))
//	for _, f := range findings { fmt.Println(f) }
//
// It needs no GPU: it follows the shapes of the graph ([shapes.Infer]) and where ONNX Runtime's CUDA provider would put
// each node. A graph that passes has
//
//   - no node that would run on the CPU, and no copy between the devices within a step;
//   - no wait of the host for the device, so that a step is launched while the one before runs;
//   - the same numbers in every run;
//   - no dimension of the example that it was exported with;
//   - nothing that breaks the capture of a step as a CUDA graph, or its replay for several batch shapes.
//
// ONNX Runtime's own optimiser can bring such nodes back: check the graph that it saves as well.
package lint
