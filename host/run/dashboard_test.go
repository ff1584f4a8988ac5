package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
)

// TestDashboardChangesNothing: a run has the same bits without a page, and with one that is read, flooded and hung
// upon. The page shows slots while the run trains, and ends with it. The run trains until the page has shown them.
func TestDashboardChangesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	seen := make(chan struct{})
	clients.Go(func() {
		if watchPage(ctx, at) {
			flood(ctx, at)
			time.Sleep(time.Second)
			close(seen)
		}
	})
	flags := []string{"--schedule", "constant", "--eval-every", "20", "--checkpoint-every", "0", "--max-steps"}
	with, err := trainPico(t, console.Console{Stop: seen}, append(flags, "1000000", "--dashboard", at)...)
	cancel()
	clients.Wait()
	if !errors.Is(err, exit.ErrInterrupted) {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", at); err == nil {
		c.Close()
		t.Error("the run has ended and listens")
	}
	steps, err := rundir.Steps(files.In(with, rundir.Checkpoints))
	if err != nil || len(steps) == 0 {
		t.Fatal(steps, err)
	}
	last := steps[len(steps)-1]
	without, err := trainPico(t, console.Console{}, append(flags, fmt.Sprint(last))...)
	if err != nil {
		t.Fatal(err)
	}
	weights := func(dir string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, rundir.Checkpoints, rundir.Step(last), "params.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if !bytes.Equal(weights(with), weights(without)) {
		t.Errorf("the weights of step %d differ", last)
	}
}

// watchPage reads the events of a run until they have slots and a status.
func watchPage(ctx context.Context, at string) bool {
	for ctx.Err() == nil {
		q, _ := http.NewRequestWithContext(ctx, "GET", "http://"+at+"/api/runs/0/events", nil)
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		training, slots := false, false
		for in := bufio.NewScanner(answer.Body); in.Scan() && !(training && slots); {
			training = training || strings.Contains(in.Text(), `"status":"training"`)
			slots = slots || strings.Contains(in.Text(), `"ring":[[`)
		}
		answer.Body.Close()
		if training && slots {
			return true
		}
	}
	return false
}

// flood asks again and again by many connections, and never reads an answer.
func flood(ctx context.Context, at string) {
	for range 100 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return
		}
		context.AfterFunc(ctx, func() { c.Close() })
		c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		for range 50 {
			fmt.Fprintf(c, "GET /api/runs/0/events HTTP/1.1\r\nHost: %s\r\n\r\n", at)
		}
	}
}
