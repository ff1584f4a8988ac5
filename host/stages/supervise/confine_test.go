package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// intruderVariable names the folder of the built plugin, for a test as another user, who has no compiler.
const intruderVariable = "TEST_INTRUDER"

// target is the machine that the intruder finds.
type target struct {
	home, other, run string // folders outside of its own: that of the user, of another plugin, of a run
	tcp, udp, unix   string // addresses
	victim           int    // another process of the user
}

// intruder returns the plugin, in a folder that all users can read.
func intruder(t *testing.T) catalog.Entry {
	t.Helper()
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { // Go's poller has descriptors from its first use on
		l.Close()
	}
	folder := os.Getenv(intruderVariable)
	if folder == "" {
		var err error
		if folder, err = os.MkdirTemp("/tmp", "intruder"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(folder) })
		os.Chmod(folder, 0o755)
		program := filepath.Join(folder, catalogtest.Program("intruder"))
		if err := catalogtest.Build(program, "../../../plugins/testdata/intruder"); err != nil {
			t.Fatal(err)
		}
	}
	entry, err := catalog.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// newTarget makes what the intruder tries to reach.
func newTarget(t *testing.T) (p target) {
	t.Helper()
	for _, folder := range []*string{&p.home, &p.other, &p.run} {
		*folder = t.TempDir()
		if err := os.WriteFile(filepath.Join(*folder, "secret"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XTTS_PLUGIN_TEST_FOLDER", "") // the folders above are below it
	t.Setenv("HOME", p.home)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("XTTS_RANKS_SECRET", "secret")
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.unix = filepath.Join(p.run, "socket")
	socket, err := net.Listen("unix", p.unix)
	if err != nil {
		t.Fatal(err)
	}
	p.tcp, p.udp = tcp.Addr().String(), udp.LocalAddr().String()
	victim := exec.Command("sleep", "1000") // in the group of the host, which leaves others to reap it
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	p.victim = victim.Process.Pid
	t.Cleanup(func() {
		victim.Process.Kill()
		victim.Wait()
		tcp.Close()
		udp.Close()
		socket.Close()
	})
	return p
}

// intrude starts the intruder, which refuses its configuration, and returns what came of its deeds, and the hint.
func (r *rig) intrude(deeds ...[]string) (outcomes map[string]string, hint string) {
	r.t.Helper()
	values, err := json.Marshal(map[string]any{"deeds": deeds})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Configure = &stagepb.ConfigureRequest{
		Layouts:   []*stagepb.Layout{{}},
		Instances: []*stagepb.Instance{{Name: "intrude", Stage: "intrude", ConfigJson: string(values)}},
	}
	e := r.refuse()
	_, text, ok := strings.Cut(e.Err.Error(), `instance "intrude": `)
	if !ok {
		r.t.Fatal(e)
	}
	if err := json.Unmarshal([]byte(text), &outcomes); err != nil {
		r.t.Fatal(err, e)
	}
	return outcomes, e.Hint()
}

// refusedAs are the texts of a refusal.
var refusedAs = []string{"permission denied", "operation not permitted", "not in the environment"}

func refused(outcome string) bool {
	for _, text := range refusedAs {
		if strings.Contains(outcome, text) {
			return true
		}
	}
	return false
}

// TestIntruder: a plugin that tries what it must not do is refused, deed by deed. Without the sandbox it succeeds, or
// fails for another reason, so the sandbox is what refuses it.
func TestIntruder(t *testing.T) {
	entry := intruder(t)
	confined := sandbox.Describe(sandbox.Auto)
	t.Log("sandbox", confined)
	root := os.Geteuid() == 0
	for _, mode := range []sandbox.Mode{sandbox.Auto, sandbox.Off} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t, "")
			r.Plugin, r.Sandbox, r.tasks = entry, mode, 60
			p := newTarget(t)
			victim := strconv.Itoa(p.victim)
			cases := []struct {
				by    string // what holds it
				deed  []string
				plain bool // a user who is not root can do it without the sandbox
			}{
				{sandbox.Files, []string{"read", filepath.Join(p.home, "secret")}, true},
				{sandbox.Files, []string{"list", p.home}, true},
				{sandbox.Files, []string{"read", filepath.Join(p.other, "secret")}, true},
				{sandbox.Files, []string{"write", filepath.Join(p.run, "metrics.jsonl")}, true},
				{sandbox.Files, []string{"write", filepath.Join(entry.Dir, "plugin.sum")}, false},
				{sandbox.Files, []string{"remove", filepath.Join(p.other, "secret")}, true},
				{sandbox.Files, []string{"read", fmt.Sprintf("/proc/%s/environ", victim)}, true},
				{sandbox.Calls, []string{"chmod", p.home}, true},
				{sandbox.Network, []string{"tcp", p.tcp}, true},
				{sandbox.Network, []string{"udp", p.udp}, true},
				{sandbox.Network, []string{"unix", p.unix}, true},
				{sandbox.Network, []string{"netlink"}, true},
				{sandbox.Calls, []string{"ptrace", victim}, true},
				{sandbox.Calls, []string{"process_vm_readv", victim}, true},
				{sandbox.Calls, []string{"limit", victim}, true},
				{sandbox.Calls, []string{"mount"}, false},
				{sandbox.Calls, []string{"unshare"}, false},
				{sandbox.Calls, []string{"bpf"}, false},
				{sandbox.Calls, []string{"keyctl"}, true},
				{sandbox.Calls, []string{"init_module"}, false},
				{sandbox.Calls, []string{"perf_event_open"}, true},
				{sandbox.Calls, []string{"userfaultfd"}, false},
				{sandbox.Calls, []string{"io_uring_setup"}, true},
				{sandbox.Calls, []string{"clone3"}, true},
				{sandbox.Signals, []string{"signal", victim}, true},
			}
			var deeds [][]string
			for _, c := range cases {
				deeds = append(deeds, c.deed)
			}
			got, hint := r.intrude(deeds...)
			for _, c := range cases {
				outcome := got[strings.Join(c.deed, " ")]
				switch on := mode != sandbox.Off; {
				case on && !confined.Confines(c.by):
					t.Logf("not checked, because this kernel does not hold it: %s: %s", c.deed, outcome)
				case on && c.deed[0] == "clone3" && strings.Contains(outcome, "not implemented"):
				case on != refused(outcome) && (on || root || c.plain):
					t.Errorf("%q: %s", c.deed, outcome)
				}
			}
			if named := strings.Contains(hint, "sandbox"); named != (mode != sandbox.Off) {
				t.Errorf("hint: %s", hint)
			}
			if mode == sandbox.Off {
				os.Remove(filepath.Join(entry.Dir, "plugin.sum"))
			}
		})
	}
}

// TestForks: a plugin that starts processes without end is stopped at the limit, which its user's other programs do
// not reach. Without the sandbox it starts them.
func TestForks(t *testing.T) {
	entry := intruder(t)
	if report := sandbox.Describe(sandbox.Auto); !report.Confines(sandbox.Processes) {
		t.Skip(report.Missing)
	}
	many := strconv.Itoa(forks(t, os.Geteuid() == 0))
	for _, mode := range []sandbox.Mode{sandbox.Auto, sandbox.Off} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t, "")
			r.Plugin, r.Sandbox, r.tasks = entry, mode, 100
			outcome := first(r.intrude([]string{"fork", many}))["fork "+many]
			if stopped := strings.Contains(outcome, "exit status"); stopped != (mode != sandbox.Off) {
				t.Error(outcome)
			}
		})
	}
}

// forks is how many processes are more than the limit of a test.
func forks(t *testing.T, root bool) int {
	t.Helper()
	if root {
		return 150
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	_, all, _ := strings.Cut(strings.Fields(string(load))[3], "/")
	n, err := strconv.Atoi(all)
	if err != nil {
		t.Fatal(err)
	}
	return n + 300
}

// TestIntruderAsUser is TestIntruder of a user who is not root, for whom other limits hold.
func TestIntruderAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root, so TestIntruder is the same")
	}
	built := intruder(t).Dir
	tmp, err := os.MkdirTemp("/tmp", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	const nobody = 65534
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^(TestIntruder|TestForks)$", "-test.v")
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, intruderVariable+"="+built)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: ") != 6 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAllowed: what a plugin declares, or what its user names, it may use, and its own folders.
func TestAllowed(t *testing.T) {
	if !sandbox.Describe(sandbox.Auto).Confines(sandbox.Files) {
		t.Skip("this kernel has no Landlock")
	}
	entry := intruder(t)
	r := newRig(t, "")
	p := newTarget(t)
	t.Setenv("XTTS_PLUGIN_CACHE", p.run)
	asks := *entry.Manifest
	asks.Network, asks.Folders = true, []string{p.other}
	entry.Manifest = &asks
	r.Plugin = entry
	for deed, outcome := range first(r.intrude(
		[]string{"read", filepath.Join(entry.Dir, "plugin.json")}, []string{"write in TMPDIR"}, []string{"tcp", p.tcp},
		[]string{"udp", p.udp}, []string{"netlink"}, []string{"read", filepath.Join(p.other, "secret")},
		[]string{"write", filepath.Join(p.run, "cached")}, []string{"read", "/etc/resolv.conf"},
		[]string{"read", "/proc/self/environ"}, []string{"variable", "XTTS_PLUGIN_CACHE"},
	)) {
		if outcome != "done" {
			t.Errorf("%s: %s", deed, outcome)
		}
	}
	for deed, outcome := range first(r.intrude(
		[]string{"write", filepath.Join(p.other, "secret")}, []string{"read", filepath.Join(p.home, "secret")},
		[]string{"variable", "AWS_SECRET_ACCESS_KEY"}, []string{"variable", "XTTS_RANKS_SECRET"},
		[]string{"ptrace", "1"},
	)) {
		if !refused(outcome) {
			t.Errorf("%s: %s", deed, outcome)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// TestLinkedData: files of a data folder that are links can be read, also those in linked folders, and no others beside
// them.
func TestLinkedData(t *testing.T) {
	if !sandbox.Describe(sandbox.Auto).Confines(sandbox.Files) {
		t.Skip("this kernel has no Landlock")
	}
	r := newRig(t, "")
	r.Plugin = intruder(t)
	data, there := t.TempDir(), t.TempDir()
	for _, name := range []string{"a.wav", "b.wav", "other.wav"} {
		if err := os.WriteFile(filepath.Join(there, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(filepath.Join(there, "a.wav"), filepath.Join(data, "link.wav")),
		os.Symlink(there, filepath.Join(data, "folder"))); err != nil {
		t.Fatal(err)
	}
	cfg := r.Config
	cfg.Configure = &stagepb.ConfigureRequest{Instances: []*stagepb.Instance{{
		Data: map[string]*stagepb.DataFolder{"noise": {Path: data, Files: []*stagepb.DataFile{
			{Name: "link.wav"}, {Name: "folder/b.wav"}, {Name: "missing.wav"},
		}}},
	}}}
	named := strings.Join(cfg.namedPaths(), " ")
	for path, want := range map[string]bool{data: true, "a.wav": true, "b.wav": true, "other.wav": false} {
		if strings.Contains(named, path) != want {
			t.Errorf("%s: %s", path, named)
		}
	}
}

// TestSandboxOn: a kernel that lacks Landlock or seccomp is refused, and named.
func TestSandboxOn(t *testing.T) {
	r := newRig(t, "ok")
	r.Sandbox = sandbox.On
	if report := sandbox.Describe(sandbox.On); report.Confines(sandbox.Files) && report.Confines(sandbox.Calls) {
		if _, err := callSlot(t, r.open(), 0); err != nil {
			t.Error(err)
		}
		return
	}
	e := r.refuse()
	if !strings.Contains(e.Error(), "--sandbox on: ") || !strings.Contains(e.Hint(), "--sandbox auto") {
		t.Errorf("%v (%s)", e, e.Hint())
	}
}

// TestConfinedProcess: the process is the child of the host, leads its group, and dies with the host: the
// launcher leaves no process between them.
func TestConfinedProcess(t *testing.T) {
	r := newRig(t, "ok")
	pid := r.open().PIDs()[0]
	group, err := unix.Getpgid(pid)
	if err != nil || group != pid {
		t.Errorf("group %d of process %d, %v", group, pid, err)
	}
	stat, ok := statOf(pid)
	if !ok || !strings.HasPrefix(stat.name, "supervise") {
		t.Errorf("the process runs %q", stat.name)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{fmt.Sprintf("PPid:\t%d\n", os.Getpid()), "NoNewPrivs:\t1\n"} {
		if !strings.Contains(string(status), line) {
			t.Errorf("its status lacks %q:\n%s", line, status)
		}
	}
}
