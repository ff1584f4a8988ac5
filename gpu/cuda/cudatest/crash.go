// Package cudatest destroys a GPU's context on purpose, for tests of the effect of a plugin's fault on other processes.
package cudatest

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"
)

// wild is a kernel that writes to an unmapped address.
const wild = `.version 7.0
.target sm_50
.address_size 64
.visible .entry wild()
{
	.reg .b64 %a;
	.reg .b32 %v;
	mov.u64 %a, 64;
	mov.u32 %v, 1;
	st.global.u32 [%a], %v;
	ret;
}
`

// WriteNowhere runs a kernel that writes to an unmapped address, in the current context of the calling thread, and
// returns CUDA's error: the context is lost, and every later call in it fails. Nil means that nothing happened.
func WriteNowhere() error {
	module, err := cu.LoadData(wild)
	if err != nil {
		return fmt.Errorf("cuModuleLoadData: %w", err)
	}
	kernel, err := module.Function("wild")
	if err != nil {
		return fmt.Errorf("cuModuleGetFunction: %w", err)
	}
	return errors.Join(kernel.Launch(1, 1, 1, 1, 1, 1, 0, cu.Stream{}, nil), cu.Synchronize())
}
