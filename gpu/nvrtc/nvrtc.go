// Package nvrtc compiles CUDA C++ for a GPU at run time with NVRTC, NVIDIA's compiler as a library, and keeps what it
// has compiled in a cache folder.
//
//	compiler, err := nvrtc.Open(ort.Library())
//	if err != nil { ... } // this machine has no NVRTC
//	compiled, err := compiler.Compile(ctx, nvrtc.Options{Capability: card.Capability, Cache: folder}, sources)
//	module, err := device.NewModule(compiled.Images[0])
//
// The package needs neither a GPU, nor a driver, nor a CUDA toolkit, and it is part of every build: it loads
// libnvrtc.so.13 when Open is called. xtts-host fetch cuda fetches the library.
package nvrtc

import (
	"fmt"

	loader "github.com/xtts-host/xtts-host/gpu/library"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Library is the name of NVRTC's library. CUDA 13 has this one in all its releases.
const Library = "libnvrtc.so.13"

// Compiler is a loaded NVRTC. It is safe for concurrent use.
type Compiler struct {
	path         string
	major, minor int
	known        []int // the compute capabilities that it has machine code for, times ten, in ascending order
	compile      compileFunc
}

// compileFunc compiles one source with NVRTC's options. The result is PTX if ptx is set, otherwise a cubin. On failure,
// log is what the compiler printed, or empty if it did not start.
type compileFunc func(source string, options []string, ptx bool) (image []byte, log string, err error)

// Open loads NVRTC from the folder of another library, such as ONNX Runtime's, or, if it is not there, from where the
// dynamic loader finds it. A name without a folder has no such folder. NVRTC stays loaded.
func Open(beside string) (*Compiler, error) {
	c, err := open(loader.Beside(Library, beside))
	if err != nil {
		return nil, hint.Errorf(hint.Command("fetch cuda fetches NVRTC"), "load NVRTC: %w", err)
	}
	return c, nil
}

// Version is that of CUDA, such as "13.0".
func (c *Compiler) Version() string { return fmt.Sprintf("%d.%d", c.major, c.minor) }

// Path is the file of the library.
func (c *Compiler) Path() string { return c.path }

// target returns NVRTC's name for what it compiles for. For a card that it does not know, that is PTX of the newest
// architecture before it, which the driver translates.
func (c *Compiler) target(capability int) (arch string, ptx bool, err error) {
	newest := 0
	for _, k := range c.known {
		if k <= capability {
			newest = k
		}
	}
	switch {
	case newest == 0:
		return "", false, fmt.Errorf("NVRTC %s does not compile for compute capability %d.%d", c.Version(),
			capability/10, capability%10)
	case newest == capability && capability == 90:
		return "sm_90a", false, nil // with instructions that no later card has, such as products of warpgroups
	case newest == capability:
		return fmt.Sprintf("sm_%d", capability), false, nil
	}
	return fmt.Sprintf("compute_%d", newest), true, nil
}
