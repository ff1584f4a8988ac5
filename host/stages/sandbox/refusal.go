package sandbox

import "strings"

// Texts of programs that say that the kernel refused something, in lower case.
var (
	// cudaStarts are errors of CUDA when it starts. Later ones, such as an illegal address, have other reasons.
	cudaStarts = []string{
		"cuinit", "no cuda-capable device", "cuda_error_no_device", "cuda_error_not_permitted",
		"cuda_error_operating_system", "cuda failure 304", "cuda error: os call failed", "cuda unknown error",
		"cuda driver initialization failed", "cudagetdevicecount",
	}
	noMemory    = []string{"out of memory", "out_of_memory"}
	noName      = []string{"name resolution", "name or service not known", "getaddrinfo"}
	ofSockets   = []string{"socket", "dial ", "connect", "urlopen", "lookup "}
	notAllowed  = []string{"operation not permitted", "eperm", "[errno 1]"} // of a system call
	denied      = []string{"permission denied", "permissionerror", "eacces", "[errno 13]"}
	noSharedOMP = "can't open shm" // of an older OpenMP of Intel
)

const otherwise = ", or --sandbox off if you trust the plugin (docs/plugin-reference.md, The sandbox)"

// Refusal reports whether a text, such as an error of a program, says that the kernel refused something, and what to
// declare if the sandbox did so. What the policy allows was not refused.
func Refusal(text string, p Policy) (hint string, ok bool) {
	text = strings.ToLower(text)
	has := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	call := has(notAllowed)
	refused := call || has(denied)
	switch {
	case has(cudaStarts):
		if !p.GPU || has(noMemory) {
			return "", false
		}
		return "the sandbox may keep CUDA from the GPU: --sandbox off starts plugins without it. Report it, with the " +
			"driver's version", true
	case !p.Network && (has(noName) || refused && has(ofSockets)):
		return "the sandbox refuses the network: \"network\": true in plugin.json allows it" + otherwise, true
	case !p.GPU && (strings.Contains(text, noSharedOMP) || refused && strings.Contains(text, "/dev/shm")):
		return "the sandbox refuses shared memory: XTTS_PLUGIN_SHM=/dev/shm in the environment of the host allows it" +
			otherwise, true
	case call:
		return "the sandbox may have refused a system call, such as chmod or utime by a path, also below TMPDIR: " +
			"docs/plugin-reference.md, The sandbox, names others that do the same; --sandbox off allows it if you " +
			"trust the plugin", true
	case refused:
		return "the sandbox may have refused it: name what the plugin reads as a data folder (--plugin-data) or in " +
			"\"folders\" of plugin.json, and write below TMPDIR" + otherwise, true
	}
	return "", false
}
