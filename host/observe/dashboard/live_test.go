package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/follow"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// liveServer is a server of a run of this process. Its bus may drop events, and does nothing else wrong.
func liveServer(t *testing.T) (*Server, *event.Bus) {
	s := serve(t, Config{})
	s.Show(small(t))
	bus := event.NewBus()
	bus.Offer("dashboard", s, func(text string) {
		if !strings.Contains(text, "events were dropped") {
			t.Error(text)
		}
	})
	s.Watch(func() Live {
		return Live{
			Snapshot: bus.Snapshot(),
			Look: pipeline.Look{
				Ring:   []pipeline.RingLook{{State: pipeline.Preparing, Phase: 1, Step: 7}, {}},
				Device: []pipeline.DeviceLook{{State: pipeline.Training, Step: 5}},
			},
			Stats: pipeline.Stats{Batches: 2, Phases: []pipeline.Phase{{Name: "decode", Busy: 30 * time.Millisecond}}},
			Ranks: 1,
		}
	})
	return s, bus
}

// message waits for one of a kind in a stream.
func message(t *testing.T, in *bufio.Scanner, kind string) (v map[string]any) {
	t.Helper()
	for in.Scan() {
		if in.Text() != "event: "+kind {
			continue
		}
		in.Scan()
		if err := json.Unmarshal([]byte(strings.TrimPrefix(in.Text(), "data: ")), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Fatalf("the stream ends without a %s: %v", kind, in.Err())
	return nil
}

func stream(t *testing.T, s *Server) *bufio.Scanner {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.listener.Addr().String()+"/api/runs/0/events",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return bufio.NewScanner(answer.Body)
}

// TestLive: a page sees the slots and the parts of a step of the run of this process, and that the run has let it go.
func TestLive(t *testing.T) {
	s, bus := liveServer(t)
	defer bus.Close()
	bus.Publish(&event.Start{Total: 10, Metrics: nil})
	bus.Publish(&event.Phase{Phase: event.Training})
	bus.Publish(&event.Step{Step: 3, Loss: 1, Times: event.Times{Time: 10 * time.Millisecond,
		Train: 8 * time.Millisecond}})
	bus.Flush()
	in := stream(t, s)
	first := message(t, in, "state")
	if first["live"] != true || first["total"] != 10.0 || first["step"] != 3.0 {
		t.Errorf("%v", first)
	}
	slots := message(t, in, "slots")
	got, _ := json.Marshal([]any{slots["ring"], slots["device"], slots["phases"]})
	if string(got) != `[[[1,1,7],[0,0,0]],[[3,5]],[{"ms":15,"name":"decode"}]]` {
		t.Errorf("%s", got)
	}
	parts, _ := json.Marshal(slots["step"])
	if want := `{"ms":8,"name":"train"}`; !strings.Contains(string(parts), want) {
		t.Errorf("%s without %s", parts, want)
	}
	s.Watch(nil)
	for {
		if v := message(t, in, "state"); v["live"] == false {
			break
		}
	}
}

// TestClients: clients that hang, flood and die keep nothing: the run publishes without waiting for them, and what they
// took is given back.
func TestClients(t *testing.T) {
	s, bus := liveServer(t)
	before := runtime.NumGoroutine()
	at := s.listener.Addr().String()
	var open []net.Conn
	for i := range 2 * mostConnections {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
		switch i % 3 {
		case 0: // asks for events, and never reads
			fmt.Fprintf(c, "GET /api/runs/0/events HTTP/1.1\r\nHost: %s\r\n\r\n", at)
		case 1: // begins a request, and does not go on
			fmt.Fprintf(c, "GET /api/runs HTTP/1.1\r\nHo")
		case 2: // asks again and again
			for range 200 {
				fmt.Fprintf(c, "GET /api/runs/0/curves HTTP/1.1\r\nHost: %s\r\n\r\n", at)
			}
		}
	}
	for step := range int64(20_000) {
		if err := bus.Publish(&event.Step{Step: step + 1}); err != nil {
			t.Fatal(err)
		}
		if step%1000 == 0 {
			bus.Flush()
		}
	}
	if err := bus.Flush(); err != nil {
		t.Fatal(err)
	}
	h := &s.runs[0].hub
	h.mu.Lock()
	if n := len(h.clients); n > mostClients {
		t.Errorf("%d clients", n)
	}
	h.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	bus.Close() // ends the server
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestHub: so many pages watch a run and no more, and one that does not read keeps one wake-up and the newest message.
func TestHub(t *testing.T) {
	s, bus := liveServer(t)
	defer bus.Close()
	h := &s.all()[0].hub
	var first chan struct{}
	for range mostClients {
		if first = h.join(); first == nil {
			t.Fatal("refused")
		}
	}
	if h.join() != nil {
		t.Errorf("%d pages watch", mostClients+1)
	}
	if status, _, _ := ask(t, s, "GET", "/api/runs/0/events", ""); status != http.StatusServiceUnavailable {
		t.Errorf("one page too many: %d", status)
	}
	for step := range int64(5) {
		bus.Publish(&event.Step{Step: 10 + step})
		bus.Flush()
		h.beat(t.Context(), true)
	}
	if len(first) != 1 || !strings.Contains(string(h.state), `"step":14`) {
		t.Errorf("%d wake-ups, %s", len(first), h.state)
	}
	h.leave(first)
	if h.join() == nil {
		t.Error("no room after one has left")
	}
}

// TestHubForgets: of a run that nobody looks at, nothing is read or kept.
func TestHubForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		s.ctx, s.stop = context.WithCancel(t.Context())
		s.add(small(t), nil)
		r := s.all()[0]
		after := func(what string, d time.Duration, want int64) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := r.Mark().Steps; got != want {
				t.Errorf("%s: %d steps are kept", what, got)
			}
		}
		after("nobody has looked", time.Hour, 0)
		for range 2 {
			r.hub.fresh(t.Context())
			after("somebody has looked", kept/2, 2)
			r.hub.fresh(t.Context())
			after("and again", kept*3/4, 2)
			after("and not any more", kept, 0)
		}
		page := r.hub.join()
		r.hub.fresh(t.Context())
		after("a page is open", time.Hour, 2)
		r.hub.leave(page)
		after("it is closed", 2*kept, 0)
		s.stop()
		s.ended.Wait()
	})
}

// TestListIsBrief: the list of runs reads none of them in full.
func TestListIsBrief(t *testing.T) {
	s := serve(t, Config{Runs: []string{large(t, 5000, 40), small(t)}})
	_, _, text := ask(t, s, "GET", "/api/runs", "")
	var rows []row
	if err := json.Unmarshal([]byte(text), &rows); err != nil || len(rows) != 2 || rows[0].Step != 5000 ||
		rows[0].Status != report.Done || !(rows[0].Best < 1) || rows[1].Step != 2 {
		t.Errorf("%v: %s", err, text)
	}
	for i, r := range s.all() {
		if m := r.Mark(); m != (follow.Mark{}) {
			t.Errorf("run %d was read: %+v", i, m)
		}
	}
	ask(t, s, "GET", "/api/runs/1/log", "")
	if a, b := s.runs[0].Mark().Steps, s.runs[1].Mark().Steps; a != 0 || b != 2 {
		t.Errorf("steps that were read: %d, %d", a, b)
	}
}

// TestFaultOfThePage: a fault in a look at the run ends that, and is said.
func TestFaultOfThePage(t *testing.T) {
	said := make(chan string, 1)
	s := serve(t, Config{Warn: func(text string) { said <- text }})
	s.Show(small(t))
	s.Watch(func() Live { panic("a fault") })
	h := &s.all()[0].hub
	h.join()
	h.look()
	if text := <-said; !strings.Contains(text, "a fault") {
		t.Error(text)
	}
}

// BenchmarkBeat looks at a run with 50 slots, as a page has it done four times a second.
func BenchmarkBeat(b *testing.B) {
	l := &live{look: func() Live {
		v := Live{Ranks: 1}
		v.Look.Ring = make([]pipeline.RingLook, 50)
		v.Look.Device = make([]pipeline.DeviceLook, 3)
		v.Stats.Phases = make([]pipeline.Phase, 7)
		return v
	}}
	for b.Loop() {
		inside, _ := l.now(false)
		if _, err := json.Marshal(inside); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPacer: after a burst, requests come at their pace. One whose client has gone does not wait, and takes no turn
// from the others.
func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		began := time.Now()
		for range burst {
			if !p.wait(t.Context()) {
				t.Fatal("refused")
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the burst took %v", took)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 1000 {
			if p.wait(gone) {
				t.Fatal("a request does not wait")
			}
		}
		if !p.wait(t.Context()) {
			t.Fatal("refused")
		}
		if took := time.Since(began); took != time.Second/perSecond {
			t.Errorf("the next one came after %v", took)
		}
	})
}

// TestRefusedRequestsTakeNoTurn: who does not know the token, or comes from another page, does not slow others down.
func TestRefusedRequestsTakeNoTurn(t *testing.T) {
	s := serve(t, Config{Runs: []string{small(t)}, Address: free(t, "0.0.0.0")})
	g := newGuard(s.listener.Addr(), true)
	h := g.wrap(s.routes())
	for _, header := range []string{"Host: evil.example", "Origin: http://evil.example", "Cookie: " + g.cookie + "=a"} {
		q := httptest.NewRequest("GET", "http://127.0.0.1/api/runs", nil)
		name, value, _ := strings.Cut(header, ": ")
		if q.Header.Set(name, value); name == "Host" {
			q.Host = value
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, q); w.Code < 400 {
			t.Errorf("%s: %d", header, w.Code)
		}
	}
	if !g.pace.next.IsZero() {
		t.Error("a refused request has taken a turn")
	}
}
