package feed

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/ranks/proof"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// TestStrangers: who does not know the secret, is not expected, or comes twice, gets no descriptor and is named. The
// door stays open for the rank that is expected.
func TestStrangers(t *testing.T) {
	d, err := openDoor()
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if info, err := os.Stat(filepath.Dir(d.path())); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	memory, err := ring.Create(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	var mu sync.Mutex
	var said []string
	c := &Config{Secret: secret, Say: func(line string) { mu.Lock(); defer mu.Unlock(); said = append(said, line) }}
	type admitted struct {
		in  []knocker
		err error
	}
	done := make(chan admitted, 1)
	go func() {
		in, err := d.admit(t.Context(), c, map[int]bool{1: true, 2: true}, memory.File())
		done <- admitted{in, err}
	}()
	refused := func(what string, f *os.File, err error) {
		if err == nil {
			t.Errorf("%s gets %v", what, f)
		}
	}
	_, f, err := knock(t.Context(), d.path(), 1, "another secret")
	refused("who has another secret", f, err)
	_, f, err = knock(t.Context(), d.path(), 3, secret)
	refused("another rank", f, err)
	first, f, err := knock(t.Context(), d.path(), 1, secret)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	f.Close()
	_, f, err = knock(t.Context(), d.path(), 1, secret)
	refused("a rank that is in", f, err)
	talk(t, d.path())
	second, f, err := knock(t.Context(), d.path(), 2, secret)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	f.Close()
	a := <-done
	if a.err != nil || len(a.in) != 2 {
		t.Fatalf("%v, %v", a.in, a.err)
	}
	for _, k := range a.in {
		k.conn.Close()
	}
	text := strings.Join(said, "\n")
	if strings.Count(text, "it does not know the secret of the run") != 4 ||
		!strings.Contains(text, "rank 3 is not expected") || !strings.Contains(text, "rank 1 is not expected") {
		t.Errorf("said:\n%s", text)
	}
}

// talk has strangers say something at a door, who get no more than a nonce.
func talk(t *testing.T, door string) {
	t.Helper()
	for _, words := range []string{"", "hello", strings.Repeat("x", proof.NonceBytes+4+proof.Bytes)} {
		conn, err := net.Dial("unix", door)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, words)
		if words == "" || words == "hello" {
			conn.(*net.UnixConn).CloseWrite()
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		if got, _ := io.ReadAll(conn); len(got) != len(greeting)+proof.NonceBytes {
			t.Errorf("who says %.5q gets %d bytes", words, len(got))
		}
		conn.Close()
	}
}

// TestDoorCloses: the end of the context ends the wait for a rank that does not come.
func TestDoorCloses(t *testing.T) {
	d, err := openDoor()
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Dial("unix", d.path()) // it says nothing, and is not waited for
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	why := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { end(why) })
	began := time.Now()
	if _, err := d.admit(ctx, &Config{Secret: secret}, map[int]bool{1: true}, nil); !errors.Is(err, why) {
		t.Error(err)
	}
	if took := time.Since(began); took > proof.Patience/2 {
		t.Errorf("after %v", took)
	}
	d.close()
	if _, err := os.Stat(filepath.Dir(d.path())); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// TestImpostor: a guest takes nothing from who listens at the socket and does not know the secret, or speaks something
// else.
func TestImpostor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	says := make(chan string)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, <-says)
			io.Copy(io.Discard, conn)
		}
	}()
	nonce := strings.Repeat("n", proof.NonceBytes)
	for text, want := range map[string]string{
		greeting + nonce + strings.Repeat("p", proof.Bytes) + "\x00": "it does not know the secret",
		"SSH-2.0-OpenSSH_9.9\r\n" + nonce:                            "none of this version",
	} {
		go func() { says <- text }()
		if _, _, err := knock(t.Context(), path, 1, secret); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestNoDescriptor: a message of the owner without the descriptor of the ring is an error that says so.
func TestNoDescriptor(t *testing.T) {
	_, err := descriptor(nil)
	if want := "the owner of the ring has sent 0 descriptors, not 1"; err == nil || err.Error() != want {
		t.Fatalf("the error is %v, want %q", err, want)
	}
}
