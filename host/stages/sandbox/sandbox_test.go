package sandbox

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// The answers of a filter.
const (
	allowed  = unix.SECCOMP_RET_ALLOW
	eperm    = unix.SECCOMP_RET_ERRNO | int(unix.EPERM)
	noSystem = unix.SECCOMP_RET_ERRNO | int(unix.ENOSYS)
)

// TestFilter runs the filter for single system calls.
func TestFilter(t *testing.T) {
	const i386, x32 = unix.AUDIT_ARCH_I386, 0x40000000
	for _, c := range []struct {
		name       string
		calls      calls
		arch       uint32
		number     uint32
		arguments  []uint64
		wantAnswer int
	}{
		{"read", calls{}, architecture, unix.SYS_READ, nil, allowed},
		{"ptrace", calls{}, architecture, unix.SYS_PTRACE, nil, eperm},
		{"the last of the list", calls{}, architecture, unix.SYS_FILE_SETATTR, nil, eperm},
		{"a call of 32 bits", calls{}, i386, 3, nil, eperm},
		{"a call of x32", calls{}, architecture, x32 | unix.SYS_PTRACE, nil, noSystem},
		{"a newer call", calls{}, architecture, lastCall + 1, nil, noSystem},
		{"clone3", calls{}, architecture, unix.SYS_CLONE3, nil, noSystem},
		{"a thread", calls{}, architecture, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allowed},
		{"a namespace", calls{}, architecture, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_NEWUSER}, eperm},
		{"a Unix socket", calls{}, architecture, unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, allowed},
		{"an internet socket", calls{}, architecture, unix.SYS_SOCKET, []uint64{unix.AF_INET}, eperm},
		{"a family, high", calls{}, architecture, unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_INET6}, eperm},
		{"the network", calls{Network: true}, architecture, unix.SYS_SOCKET, []uint64{unix.AF_INET6}, allowed},
		{"packets", calls{Network: true}, architecture, unix.SYS_SOCKET, []uint64{unix.AF_PACKET}, eperm},
		{"connect", calls{}, architecture, unix.SYS_CONNECT, nil, eperm},
		{"connect to MPS", calls{Connect: true}, architecture, unix.SYS_CONNECT, nil, allowed},
		{"connect by the network", calls{Network: true}, architecture, unix.SYS_CONNECT, nil, allowed},
		{"own limit", calls{}, architecture, unix.SYS_PRLIMIT64, []uint64{0, 7, 1 << 40}, allowed},
		{"limit of another", calls{}, architecture, unix.SYS_PRLIMIT64, []uint64{1, 7, 1 << 40}, eperm},
		{"limit of another, near", calls{}, architecture, unix.SYS_PRLIMIT64, []uint64{1, 7, 1}, eperm},
		{"look at a limit", calls{}, architecture, unix.SYS_PRLIMIT64, []uint64{1, 7, 0}, allowed},
		{"times of an open file", calls{}, architecture, unix.SYS_UTIMENSAT, []uint64{3, 0}, allowed},
		{"times by a path", calls{}, architecture, unix.SYS_UTIMENSAT, []uint64{3, 1 << 40}, eperm},
		{"truncate before Landlock 3", calls{}, architecture, unix.SYS_TRUNCATE, nil, eperm},
		{"truncate", calls{Truncate: true}, architecture, unix.SYS_TRUNCATE, nil, allowed},
		{"empty to read", calls{}, architecture, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TRUNC}, eperm},
		{"empty without access", calls{}, architecture, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TRUNC | 3}, eperm},
		{"empty to write", calls{}, architecture, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TRUNC | unix.O_WRONLY},
			allowed},
		{"empty to read and write", calls{}, architecture, unix.SYS_OPENAT,
			[]uint64{0, 0, unix.O_TRUNC | unix.O_RDWR}, allowed},
		{"open to read", calls{}, architecture, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CLOEXEC}, allowed},
		{"openat2 before Landlock 3", calls{}, architecture, unix.SYS_OPENAT2, nil, noSystem},
		{"openat2", calls{Truncate: true}, architecture, unix.SYS_OPENAT2, nil, allowed},
		{"empty to read, Landlock 3", calls{Truncate: true}, architecture, unix.SYS_OPENAT,
			[]uint64{0, 0, unix.O_TRUNC}, allowed},
		{"mode of an open file", calls{}, architecture, unix.SYS_FCHMOD, []uint64{3, 0o755}, allowed},
		{"setuid of an open file", calls{}, architecture, unix.SYS_FCHMOD, []uint64{3, 0o4755}, eperm},
		{"an open file for all", calls{}, architecture, unix.SYS_FCHMOD, []uint64{3, 0o666}, eperm},
		{"attribute of an open file", calls{}, architecture, unix.SYS_FSETXATTR, nil, eperm},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := c.calls.filter()
			if err != nil {
				t.Fatal(err)
			}
			program, ok := bpf.Disassemble(raw)
			if !ok {
				t.Fatal("not all instructions are known")
			}
			vm, err := bpf.NewVM(program)
			if err != nil {
				t.Fatal(err)
			}
			data := binary.BigEndian.AppendUint32(nil, c.number) // the machine of package bpf reads network order
			data = binary.BigEndian.AppendUint32(data, c.arch)
			data = append(data, make([]byte, 8)...)
			for _, a := range append(c.arguments, 0, 0, 0) {
				data = binary.BigEndian.AppendUint32(data, uint32(a))
				data = binary.BigEndian.AppendUint32(data, uint32(a>>32))
			}
			if got, err := vm.Run(data); err != nil || got != c.wantAnswer {
				t.Errorf("answer %#x, want %#x, %v", got, c.wantAnswer, err)
			}
		})
	}
}

// TestDescribe: what older kernels, and machines without cgroups, hold and miss, and what --sandbox on says to them.
func TestDescribe(t *testing.T) {
	seven := kernel{abi: 7}
	for _, c := range []struct {
		name    string
		mode    Mode
		kernel  kernel
		missing string
		refusal string
	}{
		{"all", On, seven, "", ""},
		{"Linux 6.8", On, kernel{abi: 4}, Signals, ""},
		{"no Landlock", On, kernel{noFiles: "function not implemented"}, "files, signals",
			"--sandbox on: function not implemented"},
		{"no Landlock, auto", Auto, kernel{noFiles: "function not implemented"}, "files, signals", ""},
		{"no seccomp", On, kernel{abi: 7, noCalls: "invalid argument"}, "network, system calls",
			"--sandbox on: invalid argument"},
		{"root in a container", On, kernel{abi: 7, noTasks: "read-only file system"}, Processes, ""},
		{"off", Off, seven, "files, network, system calls, signals, number of processes", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var missing []string
			r := describe(c.mode, c.kernel)
			for _, f := range r.Missing {
				missing = append(missing, f.What)
				if f.Why == "" || r.Confines(f.What) {
					t.Errorf("%+v", f)
				}
			}
			if got := strings.Join(missing, ", "); got != c.missing || len(r.Missing)+len(r.Holds) != 5 {
				t.Errorf("missing: %q, want %q", got, c.missing)
			}
			err := c.mode.check(c.kernel)
			if (err == nil) != (c.refusal == "") || err != nil && (err.Error() != c.refusal ||
				!strings.Contains(hint.Of(err), "--sandbox auto")) {
				t.Errorf("%v, want %s", err, c.refusal)
			}
			if lines := r.Lines(); c.mode != Off && len(lines) != 1+len(r.Missing) {
				t.Errorf("%q", lines)
			}
			hostile := !strings.Contains(strings.Join(r.Lines(), "\n"), "only against errors")
			for _, f := range r.Holds {
				hostile = hostile && !strings.Contains(f.Why, "only against errors")
			}
			if c.mode != Off && hostile != (c.kernel.abi > 0) {
				t.Errorf("what holds: %q, %v", r.Lines(), r.Holds)
			}
		})
	}
}

// TestGroupFolder: the cgroup of this process in both versions, in a container and without one.
func TestGroupFolder(t *testing.T) {
	const v1 = "30 23 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
	const v2 = "31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
	for _, c := range []struct{ groups, mounts, want string }{
		{"8:pids:/user\n0::/\n", v1 + v2, "/sys/fs/cgroup/pids/user"},
		{"0::/user.slice/session-1.scope\n", v2, "/sys/fs/cgroup/user.slice/session-1.scope"},
		{"8:pids:/docker/ab\n", "30 23 0:26 /docker/ab /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
			"/sys/fs/cgroup/pids"},
		{"8:pids:/other\n", "30 23 0:26 /docker/ab /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n", ""},
		{"", v1 + v2, ""},
		{"8:pids:/\nx\n", "x\n", ""},
	} {
		if got, err := groupFolder(c.groups, c.mounts); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q in %q: %q, %v", c.groups, c.mounts, got, err)
		}
	}
}

// TestPrograms: the environments of an interpreter, and no home folder.
func TestPrograms(t *testing.T) {
	home := t.TempDir()
	file := func(parts ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{home}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(to string, parts ...string) {
		t.Helper()
		path := filepath.Join(append([]string{home}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	base := filepath.Dir(filepath.Dir(file("versions", "3.13", "bin", "python3.13")))
	file("versions", "3.13", "lib", "python3.13", "os.py")
	file("plugin", ".venv", "pyvenv.cfg")
	link(filepath.Join(base, "bin", "python3.13"), "plugin", ".venv", "bin", "python3")
	tool := filepath.Dir(file("tools", "bin", "node"))
	file("tools", "lib", "x")
	file("bin", "mine")
	shims := filepath.Dir(file("pyenv", "shims", "python3"))
	file("lib", "mine")
	link(home, "linked", ".venv") // of a plugin that wants to read the home folder
	file("pyvenv.cfg")
	path := strings.Join([]string{"PATH=/usr/bin", "", ".", tool, shims, filepath.Join(home, "bin"), home}, ":")
	found := Programs("/bin/sh", filepath.Join(home, "plugin"),
		[]string{path, "LD_LIBRARY_PATH=" + filepath.Join(home, "tools", "lib")}, home)
	found = append(found, Programs("/bin/sh", filepath.Join(home, "linked"), nil, home)...)
	for _, want := range []string{
		base, filepath.Join(home, "plugin", ".venv"), tool, filepath.Join(home, "tools", "lib"),
		filepath.Join(home, "bin"), filepath.Join(home, "pyenv"), "/bin/sh",
	} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not in %q", want, found)
		}
	}
	for _, not := range []string{home, filepath.Join(home, "lib"), ".", "/"} {
		if slices.Contains(found, not) {
			t.Errorf("%s is in %q", not, found)
		}
	}
}

// TestRefusal: the texts by which programs say that the kernel refused something, and what the process was allowed.
func TestRefusal(t *testing.T) {
	gpu, network := Policy{GPU: true}, Policy{Network: true}
	const files, calls, cuda, shared = `in "folders"`, "chmod or utime", "keep CUDA from", "XTTS_PLUGIN_SHM=/dev/shm"
	for _, c := range []struct {
		text   string
		policy Policy
		want   string
	}{
		{"no such file", Policy{}, ""},
		{"open /home/me/x: permission denied", Policy{}, files},
		{"PermissionError: [Errno 13] Permission denied: '/home/me/x'", Policy{}, files},
		{"PermissionError: [Errno 1] Operation not permitted: '/tmp/xtts-plugin-tmp-1/x'", Policy{}, calls},
		{"dial tcp 1.2.3.4:80: socket: operation not permitted", Policy{}, "network"},
		{"dial unix /run/x: connect: permission denied", network, files},
		{"urlopen error [Errno -3] Temporary failure in name resolution", Policy{}, "network"},
		{"urlopen error [Errno -3] Temporary failure in name resolution", network, ""},
		{"<urlopen error [Errno 1] Operation not permitted>", Policy{}, "network"},
		{"Failed to resolve ([Errno -2] Name or service not known)", Policy{}, "network"},
		{"the NVIDIA driver does not start: cuInit: CUDA_ERROR_NO_DEVICE (100)", gpu, cuda},
		{"the NVIDIA driver does not start: cuInit: CUDA_ERROR_NO_DEVICE (100)", Policy{}, ""},
		{"CUDA failure 304: OS call failed or operation not supported", gpu, cuda},
		{"RuntimeError: No CUDA-capable device is detected", gpu, cuda},
		{"RuntimeError: CUDA error: device-side assert triggered", gpu, ""},
		{"CUDA error: an illegal memory access was encountered", gpu, ""},
		{"cudaGetDeviceCount() error: out of memory", gpu, ""},
		{"OMP: Error #179: Function Can't open SHM failed:", Policy{}, shared},
		{"OMP: Error #179: Function Can't open SHM failed:", gpu, ""},
		{"PermissionError: [Errno 13] Permission denied: '/dev/shm/x'", Policy{}, shared},
	} {
		got, ok := Refusal(c.text, c.policy)
		if ok != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestWrapMissingProgram: a program that cannot be executed gives the error that it gives without a launcher, and a
// command that is not found keeps its error.
func TestWrapMissingProgram(t *testing.T) {
	cmd := exec.Command("/nonexistent/program", "argument")
	launch, err := Wrap(cmd, Policy{}, Auto)
	if err != nil {
		t.Fatal(err)
	}
	err = launch.Started(cmd.Start())
	cmd.Wait()
	launch.Close()
	if plain := exec.Command("/nonexistent/program").Start(); err == nil || err.Error() != plain.Error() {
		t.Errorf("%v, want %v", err, plain)
	}
	missing := exec.Command("nonexistent-program")
	if launch, err := Wrap(missing, Policy{}, Auto); launch != nil || err != nil || missing.Start() == nil {
		t.Errorf("%v, %v", launch, err)
	}
}

// TestLimits: the limits and capabilities of a confined process.
func TestLimits(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "ulimit -c; ulimit -n; grep -e ^Cap -e ^NoNewPrivs /proc/self/status")
	launch, err := Wrap(cmd, Policy{}, Auto)
	if err != nil {
		t.Fatal(err)
	}
	text, err := output(t, cmd, launch)
	if err != nil {
		t.Error(err)
	}
	lines := strings.Split(text, "\n")
	if len(lines) < 2 || lines[0] != "0" || len(lines[1]) > len("65536") {
		t.Errorf("limits of dumps and files: %s", text)
	}
	for _, want := range []string{"NoNewPrivs:\t1", "CapInh:\t0000000000000000", "CapAmb:\t0000000000000000"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if os.Geteuid() == 0 && !strings.Contains(text, "CapEff:\t0000000000004006") {
		t.Errorf("root has other capabilities: %s", text)
	}
}
