package supervise

import (
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/socketdir"
)

// inherited lists the host's variables that a plugin inherits. It is an allow list: the host's CUDA_VISIBLE_DEVICES
// would make other GPUs visible, and plugins must not see the host's secrets.
var inherited = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_CACHE_PATH", "OMP_NUM_THREADS",
	"GOMAXPROCS", "GODEBUG", "GORACE", "GOTRACEBACK", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
	"NVIDIA_TF32_OVERRIDE",
}

// inheritedPrefixes are the prefixes of variables for plugin authors.
var inheritedPrefixes = []string{"XTTS_PLUGIN_"}

// ortLibrary is the variable with the path of the ONNX Runtime library, for plugins and for the host.
const ortLibrary = "XTTS_HOST_ORT_LIB"

// environment builds a plugin's environment from the host's. device is the UUID of the only visible GPU, or empty.
// library is the path of ONNX Runtime's library, or empty.
func environment(host []string, device, library string) []string {
	var env []string
	for _, kv := range host {
		key, _, _ := strings.Cut(kv, "=")
		if key == "TMPDIR" {
			kv = "TMPDIR=" + socketdir.TempDir() // a plugin has another working directory
		}
		if slices.Contains(inherited, key) ||
			slices.ContainsFunc(inheritedPrefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			env = append(env, kv)
		}
	}
	if library != "" {
		env = append(env, ortLibrary+"="+library)
	}
	return append(env,
		"CUDA_VISIBLE_DEVICES="+device, // if empty, no GPU is visible (if unset, all would be)
		"CUDA_DEVICE_ORDER=PCI_BUS_ID",
		"ORT_DISABLE_TELEMETRY=1",
	)
}
