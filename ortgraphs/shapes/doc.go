// Package shapes runs an ONNX graph on shapes instead of data. Given a size for each symbol, it returns the shape and
// type of every value, the numbers of small values from which shapes are computed, and the cost of a run.
//
//	r, err := shapes.Infer(model, shapes.Sizes{"B": 16, "T_text": 200, "T_mel": 500})
//	...
//	r.Value("loss").Shape // []int64{}
//	r.Cost().FLOPs
//
// A graph with a frozen dimension fails for another size of it, at the node whose operands no longer match: that is a
// [*NodeError]. A value that depends on data (NonZero), or comes from an unknown operator, has no known shape. Values
// that are computed from it have none either, and nothing is reported about them.
//
// Calls of model-local functions are replaced by their bodies. The rules are those of the operators' definitions
// (https://onnx.ai/onnx/operators), opset 20, plus the matrix product that ONNX Runtime's own optimizer writes.
package shapes
