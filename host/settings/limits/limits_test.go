package limits

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTotal(t *testing.T) {
	for _, tt := range []struct {
		l    Limits
		want int64
		what string
	}{
		{Limits{Memory: 8 << 30}, 8 << 30, "the machine's memory"},
		{Limits{Memory: 8 << 30, Container: 2 << 30}, 2 << 30, "the container's memory limit"},
	} {
		if n, what := tt.l.Total(); n != tt.want || what != tt.what {
			t.Errorf("%+v: %d, %s", tt.l, n, what)
		}
	}
}

func TestCheck(t *testing.T) {
	if err := (Limits{AddressSpace: 4 << 30, Stack: 8 << 20, Threads: 99, Running: 70}).Check(); err != nil {
		t.Error(err)
	}
	for want, l := range map[string]Limits{
		"limited to 1024 MiB (ulimit -v)":                          {AddressSpace: 1 << 30},
		"limited to 64 KiB (ulimit -s)":                            {Stack: 64 << 10},
		"may have 99 processes and threads (ulimit -u) and has 80": {Threads: 99, Running: 80},
	} {
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestRead runs in a process of its own, whose limits the shell has lowered.
func TestRead(t *testing.T) {
	if os.Getenv("LIMITS") != "" {
		l := Read()
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			t.Fatal(err)
		}
		if l.Files != 64 || l.AddressSpace != 64<<30 || l.Stack != 4<<20 || l.Seconds != 3600 ||
			l.Memory != int64(info.Totalram)*int64(info.Unit) || l.Container > l.Memory {
			t.Errorf("%+v", l)
		}
		return
	}
	cmd := exec.Command("sh", "-c",
		"ulimit -n 64; ulimit -v 67108864; ulimit -s 4096; ulimit -t 3600; exec \"$0\" -test.run=TestRead", os.Args[0])
	cmd.Env = append(os.Environ(), "LIMITS=1")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "address space") { // the race detector reserves more
		t.Skip(string(out))
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
