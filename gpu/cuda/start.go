package cuda

// #include <cuda.h>
// #include "libcuda/libcuda.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/xtts-host/xtts-host/gpu"
)

// Start loads the NVIDIA driver and starts it, if this process has not. An error means that the process can use no
// GPU; it is the same at every call, and has a hint. The functions of this package call Start.
func Start() error { return start() }

var start = sync.OnceValue(func() error {
	keepCache()
	runtime.LockOSThread() // the loader keeps its message per thread
	defer runtime.UnlockOSThread()
	var message *C.char
	switch result := C.xtts_cuda_start(&message); {
	case result < 0:
		return &notStarted{"the NVIDIA driver does not load: " + C.GoString(message)}
	case result > 0:
		return &notStarted{fmt.Sprintf("the NVIDIA driver does not start: %v", check("cuInit", C.CUresult(result)))}
	}
	return nil
})

// keepCache makes the driver keep compiled kernels in this program's cache folder instead of ~/.nv. Plugins inherit the
// setting.
func keepCache() {
	const variable = "CUDA_CACHE_PATH"
	if os.Getenv(variable) != "" {
		return
	}
	if dir, err := os.UserCacheDir(); err == nil {
		os.Setenv(variable, dir+"/xtts-host/cuda")
	}
}

// notStarted is why the driver cannot be used.
type notStarted struct{ reason string }

func (e *notStarted) Error() string { return e.reason }
func (e *notStarted) Hint() string  { return gpu.FaultHint }
