package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// clients are those of a page, as long as its run goes on.
type clients struct {
	all     sync.WaitGroup
	answers atomic.Int64
}

// watch has so many clients at the page of a run, which may not be there yet, until ctx ends.
func watch(ctx context.Context, at string, number int, read bool) *clients {
	c := &clients{}
	for range number {
		c.all.Go(func() {
			for ctx.Err() == nil { // until the server is there, and again if it has dropped the client
				if read {
					c.read(ctx, at)
				} else {
					hang(ctx, at)
				}
				sleep(ctx, 100*time.Millisecond)
			}
		})
	}
	return c
}

// wait waits for their end, and returns how many messages and answers they have read.
func (c *clients) wait() int64 {
	c.all.Wait()
	return c.answers.Load()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// read does what an open page does: it reads the messages of the run, and asks for the curves and the log every two
// seconds.
func (c *clients) read(ctx context.Context, at string) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	events, err := ask(ctx, at, "events")
	if err != nil {
		return
	}
	defer events.Close()
	c.all.Go(func() {
		for ctx.Err() == nil {
			for _, what := range []string{"curves?pieces=600", "log"} {
				if body, err := ask(ctx, at, what); err == nil {
					io.Copy(io.Discard, body)
					body.Close()
					c.answers.Add(1)
				}
			}
			sleep(ctx, 2*time.Second)
		}
	})
	for in := bufio.NewScanner(events); in.Scan(); {
		c.answers.Add(1)
	}
}

// ask makes a request about the run of a page.
func ask(ctx context.Context, at, what string) (io.ReadCloser, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/api/runs/0/%s", at, what), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("%s: %s", what, answer.Status)
	}
	return answer.Body, nil
}

// hang asks for the messages of the run, and does not read them.
func hang(ctx context.Context, at string) {
	about, err := ask(ctx, at, "about") // fails until the run has a folder
	if err != nil {
		return
	}
	about.Close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /api/runs/0/events HTTP/1.1\r\nHost: %s\r\n\r\n", at)
	<-ctx.Done()
}
