//go:build cuda

// Package cudatest breaks a GPU's context on purpose, for tests of what a plugin's fault does to others.
package cudatest

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"
)

// wild is a kernel that writes to an address where no memory is.
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

// WriteNowhere runs a kernel that writes to an address where no memory is, on the context that is current on the calling thread, and
// returns what CUDA says: the context is lost, every later call of it fails. Nil means that nothing happened.
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
