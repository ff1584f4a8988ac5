package cudac

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// biasThreads is the size of a block of the function that converts biases. Each bias has a block.
const biasThreads = 256

// newBiases is the kernel that converts biases to bf16.
func newBiases(r *fuse.Region) *Kernel {
	k := &Kernel{}
	for _, n := range r.Nodes {
		k.In, k.Out = append(k.In, n.In[0].Tensor), append(k.Out, n.Out[0])
	}
	launch := Launch{Function: "biases", Blocks: [2]int{len(k.In), 1}, Threads: biasThreads}
	var parameters []string
	for i := range 2 * len(k.In) {
		launch.Arguments = append(launch.Arguments, i)
		if i < len(k.In) {
			parameters = append(parameters, fmt.Sprintf("const float *p%d", i))
		} else {
			parameters = append(parameters, fmt.Sprintf("bf16 *o%d", i-len(k.In)))
		}
	}
	w := &writer{}
	w.line(`extern "C" __global__ void __launch_bounds__(%d) biases(%s) {`, biasThreads, strings.Join(parameters, ", "))
	for i, t := range k.In {
		w.line("if (blockIdx.x == %d)", i)
		w.line("\tfor (int i = threadIdx.x; i < %d; i += blockDim.x) o%d[i] = p%d[i];", t.Elements(), i, i)
	}
	w.line("}")
	k.Source, k.Launches = w.String(), []Launch{launch}
	return k
}
