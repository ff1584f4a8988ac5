package debug

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoFolder(t *testing.T) {
	f, err := Open("")
	if f != nil || err != nil {
		t.Fatalf("%v, %v", f, err)
	}
	f.Reach(Point{Phase: "start"})
	if f.Ledger() != "" || f.Close() != nil {
		t.Error("no folder does something")
	}
}

// TestReach: the run waits for the harness's answer, and continues when the harness is gone.
func TestReach(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, socketFile))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	reached := make(chan struct{})
	go func() {
		f.Reach(Point{Phase: "configure", Plugin: "features", PID: 7, Worker: 1})
		close(reached)
	}()
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var got Point
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	if want := (Point{Phase: "configure", Host: os.Getpid(), Plugin: "features", PID: 7, Worker: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	select {
	case <-reached:
		t.Error("it does not wait")
	default:
	}
	if _, err := conn.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	<-reached
	conn.Close()
	f.Reach(Point{Phase: "attach"})
	f.Reach(Point{Phase: "batch"})
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeadHarness: the socket of a harness that was killed stops no training.
func TestDeadHarness(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketFile), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.Reach(Point{Phase: "start"})
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), memoryFile)
	for range 2 { // the second time as a resumed run
		s, err := startSampler(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.write(); err != nil {
			t.Error(err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	var v Sample
	if err := json.Unmarshal([]byte(lines[1]), &v); err != nil {
		t.Fatal(err)
	}
	if v.Host != os.Getpid() || v.HeapBytes == 0 || v.Goroutines < 1 || v.Descriptors < 3 {
		t.Errorf("%+v", v)
	}
}
