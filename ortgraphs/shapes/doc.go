// Package shapes runs an ONNX graph on shapes instead of on data: given a size for each symbol it tells the shape and
// type of every value, the numbers of the small values that shapes are computed from, and what a run costs.
//
//	r, err := shapes.Infer(model, shapes.Sizes{"B": 16, "T_text": 200, "T_mel": 500})
//	...
//	r.Value("loss").Shape // []int64{}
//	r.Cost().FLOPs
//
// A graph that froze a dimension fails with another size of it, at the node whose operands no longer fit: that is a
// [*NodeError]. What depends on data (NonZero), or comes out of an operator that the package does not know, has no
// known shape; what is computed from it has none either, and nothing is reported about it.
//
// Calls of model-local functions are replaced by their bodies. The rules are those of the operators' definitions
// (https://onnx.ai/onnx/operators), opset 20, with the matrix product that ONNX Runtime's own optimiser writes.
package shapes
