package supervise

import (
	"slices"
	"strings"
)

// inherited are the host's variables that a plugin gets. A list of what may pass, not of what may not: the host's
// CUDA_VISIBLE_DEVICES would undo the pinning, and its secrets are none of a plugin's business.
var inherited = []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_CACHE_PATH", "OMP_NUM_THREADS",
	"GOMAXPROCS", "GODEBUG", "GORACE", "GOTRACEBACK"}

// inheritedPrefixes are those of container runtimes' GPU settings, of plugin authors' own, and of the tests' GPUs without a GPU.
var inheritedPrefixes = []string{"NVIDIA_", "XTTS_PLUGIN_", "XTTS_HOST_TEST_FAKE_"}

// ortLibrary names ONNX Runtime's library to plugins, as it does to the host.
const ortLibrary = "XTTS_HOST_ORT_LIB"

// environment builds a plugin's environment from the host's. device is the UUID of the only GPU to be seen, or empty; library is
// ONNX Runtime's, or empty.
func environment(host []string, device, library string) []string {
	var env []string
	for _, kv := range host {
		key, _, _ := strings.Cut(kv, "=")
		if slices.Contains(inherited, key) || slices.ContainsFunc(inheritedPrefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			env = append(env, kv)
		}
	}
	if library != "" {
		env = append(env, ortLibrary+"="+library)
	}
	return append(env,
		"CUDA_VISIBLE_DEVICES="+device, // empty: no GPU at all, not all of them
		"CUDA_DEVICE_ORDER=PCI_BUS_ID",
		"ORT_DISABLE_TELEMETRY=1",
	)
}
