package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain makes the test binary a program that tries what it must not do, if it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "deeds" {
		deeds(os.Args[2])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// deeds empties a file that it may read, and makes it a setuid program.
func deeds(file string) {
	_, err := unix.Open(file, unix.O_RDONLY|unix.O_TRUNC, 0)
	fmt.Println("empty:", err)
	f, err := os.Open(file)
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), 0o4755)
	}
	fmt.Println("fchmod:", err)
}

// output runs a confined command to its end, and returns what it wrote to both streams, and how it ended.
func output(t *testing.T, cmd *exec.Cmd, launch *Launch) (string, error) {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := launch.Started(cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer launch.Close()
	err := cmd.Wait()
	return out.String(), err
}

// testProgram is the path of the test binary.
func testProgram(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestInherited: a file that the host has inherited itself, or that a library in C has opened, does not reach the
// program; the descriptors of the command do.
func TestInherited(t *testing.T) {
	open := func() int {
		t.Helper()
		fd, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0) // without O_CLOEXEC
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	inherited := open()
	if inherited < 6 { // below the descriptors that the launcher is given, they would be replaced
		high, err := unix.FcntlInt(uintptr(inherited), unix.F_DUPFD, 20)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(high) })
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := exec.Command("/bin/ls", "-l", "/proc/self/fd")
	cmd.ExtraFiles = []*os.File{null}
	launch, err := Wrap(cmd, Policy{}, Auto)
	if err != nil {
		t.Fatal(err)
	}
	text, err := output(t, cmd, launch)
	if err != nil || strings.Contains(text, "passwd") || !strings.Contains(text, "3 -> /dev/null") {
		t.Errorf("%v: descriptors of the program:\n%s", err, text)
	}

	for name, close := range map[string]func(int) error{
		"by one system call": closeOnExec, "by their list": closeListedOnExec,
	} {
		below, from := open(), open()
		if below > from {
			below, from = from, below
		}
		if err := close(from); err != nil {
			t.Fatal(name, err)
		}
		for fd, want := range map[int]int{below: 0, from: unix.FD_CLOEXEC} {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags != want {
				t.Errorf("%s: descriptor %d has flags %d, want %d, %v", name, fd, flags, want, err)
			}
		}
	}
}

// TestOlderKernels confines by each version of Landlock up to that of this kernel, and without Landlock and seccomp.
func TestOlderKernels(t *testing.T) {
	here := detect()
	if here.abi == 0 || here.noCalls != "" {
		t.Skip("this kernel lacks Landlock or seccomp: ", describe(Auto, here).Missing)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, readable := testProgram(t), filepath.Join(t.TempDir(), "readable")
	for abi := 0; abi <= here.abi; abi++ {
		for _, noCalls := range []string{"", "none"} {
			k := kernel{abi: abi, noCalls: noCalls, noTasks: "none"}
			writable := t.TempDir()
			cmd := exec.Command("/bin/sh", "-c",
				`cat "$0/secret"; mv "$1/a" "$1/b"; chmod 700 "$1"; "$2" deeds "$3"; exit 0`, folder, writable,
				program, readable)
			if err := os.WriteFile(filepath.Join(writable, "a"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			err := errors.Join(os.WriteFile(readable, []byte("content"), 0o600), os.Chmod(readable, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			launch, err := wrap(cmd, Policy{Write: []string{writable}, Read: []string{program, readable}}, Auto, k)
			if err != nil {
				t.Fatal(err)
			}
			text, err := output(t, cmd, launch)
			_, moved := os.Stat(filepath.Join(writable, "b"))
			if err != nil || moved != nil || strings.Contains(text, "Permission denied") != (abi > 0) ||
				strings.Contains(text, "Operation not permitted") != (noCalls == "") {
				t.Errorf("Landlock %d, seccomp %q: %v, %v: %s", abi, noCalls, err, moved, text)
			}
			info, err := os.Stat(readable)
			if err != nil {
				t.Fatal(err)
			}
			if kept := info.Size() > 0; kept != (abi >= abiTruncate || noCalls == "") {
				t.Errorf("Landlock %d, seccomp %q: a readable file has %d bytes: %s", abi, noCalls, info.Size(), text)
			}
			if kept := info.Mode() == 0o600; kept != (noCalls == "") {
				t.Errorf("Landlock %d, seccomp %q: a readable file has mode %v: %s", abi, noCalls, info.Mode(), text)
			}
		}
	}
}

// TestWriteTasks: a program that is given a GPU writes the files of its own threads, as NVIDIA's driver does with their
// names. It writes nothing else in /proc, the processes that it starts write nothing there, and without seccomp neither
// does it.
func TestWriteTasks(t *testing.T) {
	here := detect()
	if here.abi == 0 || here.noCalls != "" {
		t.Skip("this kernel lacks Landlock or seccomp: ", describe(Auto, here).Missing)
	}
	const script = `try() { if { printf "$2" > "$1"; } 2>/dev/null; then echo "$3"; fi; }
p=/proc/$$; try $p/task/$$/comm named name; cat $p/comm; try $p/task/$$/oom_score_adj 999 task; try $p/oom_score_adj 999 adj
try $p/coredump_filter 0 dump; sh -c 'printf child > /proc/self/task/$$/comm' 2>/dev/null && echo child; exit 0`
	for abi := 1; abi <= here.abi; abi++ {
		for _, c := range []struct {
			gpu     bool
			noCalls string
			want    string
		}{{true, "", "name\nnamed\ntask\n"}, {false, "", "sh\n"}, {true, "none", "sh\n"}} {
			cmd := exec.Command("/bin/sh", "-c", script)
			launch, err := wrap(cmd, Policy{GPU: c.gpu}, Auto, kernel{abi: abi, noCalls: c.noCalls, noTasks: "none"})
			if err != nil {
				t.Fatal(err)
			}
			if text, err := output(t, cmd, launch); err != nil || text != c.want {
				t.Errorf("Landlock %d, GPU %t, seccomp %q: %q, want %q, %v", abi, c.gpu, c.noCalls, text, c.want, err)
			}
		}
	}
}
