// Package steady rewrites a graph so that ONNX Runtime computes the same bits on the CPU with any number of threads:
//
//	model, err := steady.Rewrite(model, buckets)
//
// Some of its kernels choose by the number of threads in which order they add (measured with ONNX Runtime 1.29.0):
//
//   - A matrix product is divided by columns if it has more columns than rows. A thread with few columns adds more
//     products in a row before it rounds to memory: 128 with more than 64 columns, 256 with more than 32, and so on. A
//     thread with one row, or a product with one column, has a kernel of its own. None of this applies if the left
//     operand is transposed.
//   - A sum over the inner axes of a tensor, or over its first and its last ones, has a fast kernel if at least as many
//     results as threads are independent, and another one if not. A sum over the last axes always has the same.
//
// So the left operand of such a product is transposed twice, once by a node and once by the product. Such a sum becomes
// a product with a row of ones, or two sums, which is how the fast kernels add. Only the nodes are rewritten which have
// other bits with some number of threads up to [Threads], for the sizes of at least one bucket. For most runs these are
// few or none, since a batch has more rows than a layer has columns.
package steady
