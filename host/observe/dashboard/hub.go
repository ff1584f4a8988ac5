package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

const (
	// beat is the time between two looks at a run of this process; its files are read once a second.
	beat  = 250 * time.Millisecond
	beats = int(time.Second / beat)
	// piece is how many bytes of a file are read before other goroutines get a turn.
	piece = 1 << 20
	// mostClients is the number of pages that watch one run, and silence the longest time without a message to one.
	mostClients = 8
	silence     = 15 * time.Second
)

// hub reads a run for those who look at it. While nobody does, it reads nothing.
type hub struct {
	run     *run
	reading chan struct{} // of capacity 1: full while the files are read
	asked   chan struct{} // of capacity 1: full when somebody has looked

	mu      sync.Mutex // guards what follows
	clients map[chan struct{}]bool
	state   []byte // messages, which are replaced and not changed
	slots   []byte
	looked  time.Time // when somebody has looked
	read    time.Time // when all of the files was read
	ended   bool      // state is the last one
}

// serve reads for those who watch until ctx ends. A fault of this package ends that and not the run.
func (h *hub) serve(ctx context.Context, warn func(text string)) {
	defer h.fault(warn)
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.asked:
		}
		t := time.NewTicker(beat)
		for n := 0; !h.idle(); n++ {
			if h.watched() {
				h.beat(ctx, n%beats == 0)
			}
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
		t.Stop()
		h.forget(ctx)
	}
}

// fault recovers from a fault of this package, and says that there was one.
func (h *hub) fault(warn func(text string)) {
	if fault := recover(); fault != nil && warn != nil {
		warn(fmt.Sprintf("the page of %s does not move any more: %v", h.run.name, fault))
	}
}

// look notes that somebody looks at the run.
func (h *hub) look() {
	h.mu.Lock()
	h.looked = time.Now()
	h.mu.Unlock()
	select {
	case h.asked <- struct{}{}:
	default:
	}
}

// watched reports whether a page watches the run, which is a look.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.clients) == 0 {
		return false
	}
	h.looked = time.Now()
	return true
}

// kept is how long what was read of a run is kept after the last look.
const kept = 2 * time.Minute

func (h *hub) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients) == 0 && time.Since(h.looked) >= kept
}

// forget gives back what was read, unless somebody looks again.
func (h *hub) forget(ctx context.Context) {
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return
	}
	if !h.idle() {
		return // who looks has called serve again
	}
	h.run.Forget()
	h.mu.Lock()
	h.state, h.slots, h.read = nil, nil, time.Time{}
	h.mu.Unlock()
}

// patient is how long an answer waits for the files to be read. Of a very long run it then has what is read so far.
const patient = time.Second

// catchUp reads what is there, for as long as an answer waits.
func (h *hub) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return
	}
	for h.run.Read(piece) {
		if ctx.Err() != nil {
			return
		}
		if h.run.live != nil {
			time.Sleep(20 * time.Millisecond) // the run comes first
		}
	}
	h.mu.Lock()
	h.read = time.Now()
	h.mu.Unlock()
}

// fresh reads what is new for one who looks.
func (h *hub) fresh(ctx context.Context) {
	h.look()
	h.update(ctx)
}

// update reads what is new if nobody has for a second.
func (h *hub) update(ctx context.Context) {
	h.mu.Lock()
	old := time.Since(h.read) > time.Second
	h.mu.Unlock()
	if old {
		h.catchUp(ctx)
	}
}

// last makes the last message for those who watch.
func (h *hub) last(ctx context.Context, warn func(text string)) {
	defer h.fault(warn)
	h.mu.Lock()
	nobody := len(h.clients) == 0
	h.read = time.Time{} // what was written since is read, too
	h.mu.Unlock()
	if !nobody {
		state, picture := h.messages(ctx, true)
		h.tell(state, picture, true)
	}
}

// beat makes messages of what is new, and wakes those who watch.
func (h *hub) beat(ctx context.Context, second bool) {
	state, picture := h.messages(ctx, second)
	h.tell(state, picture, false)
}

// messages makes those of the run, nil where there is nothing to tell.
func (h *hub) messages(ctx context.Context, second bool) (state, picture []byte) {
	var inside *slots
	var at *event.Snapshot
	if h.run.live != nil {
		inside, at = h.run.live.now(second)
	}
	if second {
		h.update(ctx)
		state, _ = json.Marshal(h.run.stateOf(at))
	}
	if inside != nil {
		picture, _ = json.Marshal(inside)
	}
	return state, picture
}

// tell wakes those who watch if messages are new. After the last ones it drops those of a beat that began before them.
func (h *hub) tell(state, picture []byte, last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended && !last {
		return
	}
	h.ended = h.ended || last
	news := false
	for _, m := range []struct {
		to  *[]byte
		now []byte
	}{{&h.state, state}, {&h.slots, picture}} {
		if m.now != nil && !bytes.Equal(*m.to, m.now) {
			*m.to, news = m.now, true
		}
	}
	if !news {
		return
	}
	for c := range h.clients {
		select {
		case c <- struct{}{}:
		default: // it has not taken the last one: it gets only the newest
		}
	}
}

// join adds one who watches; nil if there are too many.
func (h *hub) join() (wake chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.clients) >= mostClients {
		return nil
	}
	if h.clients == nil {
		h.clients = map[chan struct{}]bool{}
	}
	wake = make(chan struct{}, 1)
	h.clients[wake] = true
	return wake
}

func (h *hub) leave(wake chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, wake)
}

// events sends what is new of a run as server-sent events, until the client goes or does not read.
func (s *Server) events(w http.ResponseWriter, q *http.Request, r *run) {
	h := &r.hub
	wake := h.join()
	if wake == nil {
		http.Error(w, "too many pages watch this run", http.StatusServiceUnavailable)
		return
	}
	defer h.leave(wake)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	var sent [2][]byte
	h.fresh(q.Context())
	first, _ := json.Marshal(r.stateOf(r.snapshot()))
	next := [2][]byte{first}
	t := time.NewTicker(silence)
	defer t.Stop()
	for last := false; ; {
		var b bytes.Buffer
		for i, name := range []string{"state", "slots"} {
			if m := next[i]; m != nil && !bytes.Equal(m, sent[i]) {
				fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, m)
				sent[i] = m
			}
		}
		if b.Len() == 0 {
			b.WriteString("event: here\ndata: 0\n\n") // a page that hears nothing for long says so
		}
		out.SetWriteDeadline(time.Now().Add(limit))
		if _, err := w.Write(b.Bytes()); err != nil || out.Flush() != nil || last {
			return
		}
		select {
		case <-wake:
		case <-t.C:
		case <-s.ctx.Done(): // the last message follows
		case <-q.Context().Done():
			if s.ctx.Err() == nil {
				return
			}
		}
		last = s.ctx.Err() != nil // the messages are then the last ones
		h.mu.Lock()
		next = [2][]byte{h.state, h.slots}
		h.mu.Unlock()
	}
}

// snapshot is that of the run of this process; nil for another.
func (r *run) snapshot() *event.Snapshot {
	if r.live == nil {
		return nil
	}
	_, at := r.live.now(false)
	return at
}
