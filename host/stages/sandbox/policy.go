package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Policy is what a plugin process may do besides what every program needs. Paths are absolute; those of links stand for
// what they lead to, and those that are missing are left out.
type Policy struct {
	// Read are files and folders, with everything below them, that may be read and executed.
	Read []string
	// Write are those that may be written, too.
	Write []string
	// Network allows sockets of the internet, and connections to Unix sockets.
	Network bool
	// GPU allows the devices of NVIDIA's driver.
	GPU bool
	// LargestFile is the size in bytes that files which the process writes may have in any case.
	LargestFile int64
	// MaxTasks is how many processes and threads the process may have with all its children; 0 means 4096. ONNX
	// Runtime, PyTorch and OpenMP start one thread for each processor, some of them for each model.
	MaxTasks int
}

// tasks is MaxTasks with its default.
func (p Policy) tasks() int { return cmp.Or(p.MaxTasks, maxTasks) }

// maxTasks is the default of Policy.MaxTasks.
const maxTasks = 4096

// system are the folders and files with programs, libraries and what libraries read when they start. There are no
// secrets in them: /etc/shadow, /etc/ssl/private and keys of services are elsewhere. Command lines of other processes
// can be read in /proc; their environments, memory and files cannot, because Landlock restricts ptrace(2) as well.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
	"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf",
	"/etc/mime.types", "/etc/os-release", "/etc/python3", "/etc/fonts",
	"/proc", "/sys/devices", "/sys/bus", "/sys/class", "/sys/fs/cgroup", "/sys/kernel/mm",
}

// devices may be read and written.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// ofNetwork is what looking up names and checking certificates reads.
var ofNetwork = []string{
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
	"/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/crypto-policies",
}

// ofGPU is what CUDA reads of the machine, and sharesGPU where it shares memory, and meets the daemon of MPS.
var (
	ofGPU     = []string{"/etc/nvidia", "/etc/OpenCL", "/sys/module"}
	sharesGPU = []string{"/dev/shm", mps}
)

// mps is the folder of NVIDIA's Multi-Process Service, if it runs. Its clients connect to a Unix socket there.
const mps = "/tmp/nvidia-mps"

// calls says which system calls the policy allows.
func (p Policy) calls(abi int) calls {
	return calls{Network: p.Network, Connect: p.GPU && exists(mps), Truncate: abi >= abiTruncate}
}

// writeTasks are the rights to the folder of the program's own threads, /proc/self/task. NVIDIA's driver writes the
// names of its threads there, to ID/comm, and does not start if it cannot (CUDA_ERROR_OPERATING_SYSTEM, 304). Landlock
// has no rule for single files of threads to come, so the program may write all of them, as without a sandbox:
// oom_score_adj, attr and the maps of a user namespace, which seccomp keeps it from making. Processes that it starts
// have folders of their own, without these rights.
func (p Policy) writeTasks(abi int) uint64 {
	switch {
	case !p.GPU:
		return 0
	case abi < abiTruncate:
		return ll.AccessFSWriteFile
	}
	return ll.AccessFSWriteFile | ll.AccessFSTruncate
}

// versions are all restrictions of Landlock, by the version of its ABI.
var versions = [...]landlock.Config{
	{}, landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8,
	landlock.V9, landlock.V10, landlock.V11,
}

// ruleset makes the rules of Landlock. The caller closes the descriptor. flags are those of landlock_restrict_self(2).
func (p Policy) ruleset(abi int) (fd int, flags uint32, err error) {
	config := versions[min(abi, len(versions)-1)]
	if p.Network {
		config.HandledAccessNet = 0
	}
	read, write, device := slices.Concat(system, loaderFolders(), p.Read), p.Write, devices
	if p.Network {
		read = append(read, ofNetwork...)
	}
	if p.GPU {
		nodes, _ := filepath.Glob("/dev/nvidia*") // the pattern is valid
		read, write, device = append(read, ofGPU...), slices.Concat(write, sharesGPU), slices.Concat(device, nodes)
	}
	var rules []landlock.Rule
	for i, paths := range [][]string{read, write, device} {
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				continue
			}
			var rule landlock.FSRule
			switch folder := info.IsDir(); {
			case i == 0 && folder:
				rule = landlock.RODirs(path)
			case i == 0:
				rule = landlock.ROFiles(path)
			case folder:
				rule = landlock.RWDirs(path)
			default:
				rule = landlock.RWFiles(path)
			}
			if i > 0 && info.IsDir() && abi >= abiRefer { // to rename between folders; older kernels never allow it
				rule = rule.WithRefer()
			}
			if i == 2 {
				rule = rule.WithIoctlDev()
			}
			if (p.Network || p.GPU) && abi >= abiUnix {
				rule = rule.WithResolveUnix()
			}
			rules = append(rules, rule.IgnoreIfMissing())
		}
	}
	return config.NewRulesetFD(rules...)
}

// enforce restricts this thread, and the program that it executes, to a ruleset.
func enforce(fd int, flags uint32) error { return ll.LandlockRestrictSelf(fd, flags) }

// loaderFolders are the folders in which the dynamic loader looks for libraries of the machine, by /etc/ld.so.conf.
func loaderFolders() (folders []string) {
	files, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf") // the pattern is valid
	for _, file := range append(files, "/etc/ld.so.conf") {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if folder := strings.TrimSpace(line); strings.HasPrefix(folder, "/") {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
