package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/health"
)

// service is the side of systemd: the socket of a service.
func service(t *testing.T) *net.UnixConn {
	t.Helper()
	at := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", at)
	return conn
}

// next returns the next notification.
func next(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	text := make([]byte, 4096)
	n, err := conn.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[:n])
}

// systemd gets a line and the watchdog's signal at once and then all the time, also while no event comes.
func TestNotifier(t *testing.T) {
	conn := service(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	n := Open(func(text string) { t.Error(text) })
	if n == nil {
		t.Fatal("it says that systemd does not ask")
	}
	if got := next(t, conn); !strings.HasPrefix(got, "STATUS=preparing; progress 0s ago, limit ") ||
		!strings.HasSuffix(got, "\nWATCHDOG=1") {
		t.Errorf("%q", got)
	}
	n.Take([]event.Event{&event.Start{Total: 9}, &event.Phase{Phase: event.Training}, &event.Step{Step: 3}})
	for !strings.HasPrefix(next(t, conn), "STATUS=training, step 3 of 9;") {
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// A run without progress does not get a signal for the watchdog, and systemd knows why.
func TestNotifierOfARunThatHangs(t *testing.T) {
	conn := service(t)
	synctest.Test(t, func(t *testing.T) {
		n := &Notifier{judge: health.New()}
		time.Sleep(31 * time.Minute)
		if told, err := n.notify(); !told || err != nil {
			t.Error(told, err)
		}
	})
	if got := next(t, conn); got != "STATUS=no progress for 31m0s, limit 30m0s: preparing" {
		t.Errorf("%q", got)
	}
}

// Without systemd there is nothing to notify, and a socket that is not there is a warning.
func TestNoService(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if n := Open(func(text string) { t.Error(text) }); n != nil {
		t.Error("it notifies no one")
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	warned := ""
	if n := Open(func(text string) { warned = text }); n != nil || !strings.HasPrefix(warned, "systemd: ") {
		t.Errorf("%v, %q", n, warned)
	}
}
