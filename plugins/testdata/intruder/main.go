// Intruder is a plugin that tries what a plugin must not do. Its configuration lists deeds with their arguments, and it
// refuses its configuration with what came of each, as JSON: "done", or an error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/shared/stage"
)

type intruder struct{}

func (intruder) Configure(_ context.Context, cfg *stage.Config) error {
	var values struct{ Deeds [][]string }
	if err := cfg.Decode(&values); err != nil {
		return err
	}
	outcomes := map[string]string{}
	for _, deed := range values.Deeds {
		outcomes[strings.Join(deed, " ")] = "done"
		if err := do(deed[0], append(deed[1:], "", "")); err != nil {
			outcomes[strings.Join(deed, " ")] = err.Error()
		}
	}
	text, err := json.Marshal(outcomes)
	if err != nil {
		return err
	}
	return errors.New(string(text))
}

func (intruder) Process(context.Context, *stage.Batch) error { return nil }

// do does a deed. at are its arguments.
func do(deed string, at []string) error {
	pid, _ := strconv.Atoi(at[0])
	switch deed {
	case "read":
		_, err := os.ReadFile(at[0])
		return err
	case "list":
		_, err := os.ReadDir(at[0])
		return err
	case "write":
		return os.WriteFile(at[0], []byte("intruded"), 0o600)
	case "write in TMPDIR":
		return os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), "mine"), []byte("mine"), 0o600)
	case "remove":
		return os.Remove(at[0])
	case "chmod":
		return os.Chmod(at[0], 0o777)
	case "tcp":
		return dial("tcp", at[0])
	case "udp":
		return dial("udp", at[0])
	case "unix":
		return dial("unix", at[0])
	case "netlink":
		_, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
		return err
	case "signal":
		return unix.Kill(pid, unix.SIGTERM)
	case "limit":
		return unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1, Max: 1}, nil)
	case "fork":
		return fork(at[0])
	case "variable":
		if os.Getenv(at[0]) == "" {
			return errors.New("not in the environment")
		}
		return nil
	}
	return call(deed, pid)
}

// call makes one system call.
func call(deed string, pid int) error {
	switch deed {
	case "ptrace":
		return unix.PtraceSeize(pid)
	case "process_vm_readv":
		var there, here byte
		local := unix.Iovec{Base: &here, Len: 1}
		_, err := unix.ProcessVMReadv(pid, []unix.Iovec{local},
			[]unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&there)), Len: 1}}, 0)
		return err
	case "mount":
		return unix.Mount("none", "/nonexistent", "tmpfs", 0, "") // nothing is mounted if it is allowed
	case "unshare":
		return unix.Unshare(unix.CLONE_NEWUTS)
	case "bpf", "keyctl", "kexec_load", "init_module", "perf_event_open", "userfaultfd", "io_uring_setup", "clone3":
		number := map[string]uintptr{
			"bpf": unix.SYS_BPF, "keyctl": unix.SYS_KEYCTL, "kexec_load": unix.SYS_KEXEC_LOAD,
			"init_module": unix.SYS_INIT_MODULE, "perf_event_open": unix.SYS_PERF_EVENT_OPEN,
			"userfaultfd": unix.SYS_USERFAULTFD, "io_uring_setup": unix.SYS_IO_URING_SETUP, "clone3": unix.SYS_CLONE3,
		}[deed]
		_, _, err := unix.Syscall6(number, 0, 0, 0, 0, 0, 0)
		return err
	}
	return fmt.Errorf("there is no deed %q", deed)
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		return err
	}
	if _, err := c.Write([]byte("intruded")); err != nil {
		return err
	}
	return c.Close()
}

// fork starts as many processes as the text says, which wait, until one cannot be started, and ends them. A shell does
// it, because Go's runtime would end this process when it cannot start a thread.
func fork(most string) error {
	c := exec.Command("sh", "-c", `i=0; while [ $i -lt $0 ]; do sleep 1000 & i=$((i+1)); done 2>/dev/null`, most)
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	err := c.Run()
	unix.Kill(-c.Process.Pid, unix.SIGKILL)
	return err
}

func main() {
	stage.Serve(stage.Plugin{ID: "intruder", Version: "1.0.0",
		Stages: map[string]func() stage.Stage{"intrude": func() stage.Stage { return intruder{} }}})
}
