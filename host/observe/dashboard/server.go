package dashboard

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/xtts-host/xtts-host/host/base/address"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/follow"
)

// Flag names the address for a run.
var Flag = address.Flag{Name: "--dashboard", Example: "127.0.0.1:8080"}

// limit is for reading a request and for writing its answer.
const limit = 10 * time.Second

// Config describes a Server.
type Config struct {
	// Flag names the address, which Address is.
	Flag    address.Flag
	Address string
	// Runs are the folders of the runs. Without any, the page is about the run of this process: Show names its folder.
	Runs []string
	// Program is this program, which speaks with the checkpoints of a run; "" if the page must not.
	Program string
	// Asks says whether speaking with the checkpoints of a run needs a recording of the voice. Its error says why they
	// do not speak. It is called when the page of a run is opened; nil if nothing is known.
	Asks func(folder string) (voice bool, err error)
	// Warn takes a fault of the page, which then does not move any more.
	Warn func(text string)
}

// Server serves the page. It is a best-effort sink of the run of this process.
type Server struct {
	live *live // of the run of this process, if there is one

	mu   sync.Mutex // guards runs
	runs []*run

	listing chan struct{} // of capacity 1: full while the list is read
	listed  time.Time     // when it was read; belongs to who has filled listing

	ctx      context.Context
	speaker  speaker
	asks     func(folder string) (voice bool, err error)
	warn     func(text string)
	heavy    chan struct{} // of what computes: one at a time
	listener net.Listener
	url      string
	server   http.Server
	stop     context.CancelFunc
	ended    sync.WaitGroup
}

// run is a run that the page shows.
type run struct {
	*follow.Run             // of which nothing is read while no page is open
	brief       *follow.Run // for the list
	name        string
	live        *live // nil for one that only has files
	hub         hub
}

// Listen serves at an address from now on, until Close.
func Listen(c Config) (*Server, error) {
	l, err := c.Flag.Listen(c.Address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: l, heavy: make(chan struct{}, 1), listing: make(chan struct{}, 1),
		speaker: speaker{program: c.Program}, asks: c.Asks, warn: c.Warn,
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if len(c.Runs) == 0 {
		s.live = &live{}
	}
	g := newGuard(l.Addr(), address.Public(c.Address))
	s.url = g.url
	s.server = http.Server{
		Handler: g.wrap(s.routes()), ReadTimeout: limit, ReadHeaderTimeout: limit, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return s.ctx },
	}
	s.ended.Go(func() { s.server.Serve(netutil.LimitListener(l, mostConnections)) }) // until it is closed
	for _, folder := range c.Runs {
		s.add(folder, nil)
	}
	return s, nil
}

// Show names the folder of the run of this process. A nil Server ignores it.
func (s *Server) Show(folder string) {
	if s != nil {
		s.add(folder, s.live)
	}
}

// add adds a run to the page.
func (s *Server) add(folder string, live *live) {
	r := &run{Run: follow.New(folder), brief: follow.Brief(folder), name: nameOf(folder), live: live}
	r.hub.run, r.hub.reading, r.hub.asked = r, make(chan struct{}, 1), make(chan struct{}, 1)
	s.mu.Lock()
	s.runs = append(s.runs, r)
	s.mu.Unlock()
	s.ended.Go(func() { r.hub.serve(s.ctx, s.warn) })
}

// all are the runs of the page.
func (s *Server) all() []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

// find returns the run of a number, nil if there is none.
func (s *Server) find(number int64) *run {
	if all := s.all(); number >= 0 && number < int64(len(all)) {
		return all[number]
	}
	return nil
}

// nameOf is the last part of a folder's path.
func nameOf(folder string) string {
	if abs, err := filepath.Abs(folder); err == nil {
		folder = abs
	}
	return visible.Short(filepath.Base(folder), 200)
}

// URL is the address of the page, with the token if one is needed.
func (s *Server) URL() string { return s.url }

// Take implements event.Sink, for the run of this process.
func (s *Server) Take(events []event.Event) error {
	s.live.take(events)
	return nil
}

// Watch gives the server what the run of this process knows. A nil look ends that, after a look that is under way. A
// nil Server ignores it.
func (s *Server) Watch(look func() Live) {
	if s != nil {
		s.live.watch(look)
	}
}

// farewell is how long a page that does not read may hold up the end of the server.
const farewell = 200 * time.Millisecond

// within calls f, and waits for it for as long as an answer waits. A call that takes longer goes on by itself: a disk
// that fails may hold up a look at the files, but not the end of the server.
func within(f func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	go func() {
		defer cancel()
		f(ctx)
	}()
	<-ctx.Done()
}

// Close ends the server, and what speaks for it. Who watches a run is told its last state, if the disk gives it within
// a second. Other answers under way are cut.
func (s *Server) Close() error {
	if s.live != nil {
		s.live.end()
	}
	within(func(ctx context.Context) {
		for _, r := range s.all() {
			r.hub.last(ctx, s.warn)
		}
	})
	s.stop()
	for late := time.Now().Add(farewell); s.watched() && time.Now().Before(late); {
		time.Sleep(farewell / 20)
	}
	err := s.server.Close()
	within(func(context.Context) { s.ended.Wait() }) // a look at the files may be under way
	s.speaker.wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// watched reports whether somebody watches a run.
func (s *Server) watched() bool {
	return slices.ContainsFunc(s.all(), func(r *run) bool {
		r.hub.mu.Lock()
		defer r.hub.mu.Unlock()
		return len(r.hub.clients) > 0
	})
}

// routes are the addresses of the server.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /runs/{run}", s.page)
	mux.HandleFunc("GET /assets/{name}", asset)
	mux.HandleFunc("GET /api/runs", s.list)
	for path, answer := range map[string]func(http.ResponseWriter, *http.Request, *run){
		"events": s.events, "about": s.about, "curves": curves, "texts": texts, "takes": takes, "clips": clips,
		"log": logLines, "ranks": ranks, "media": s.media, "clip": s.clip, "spectrogram": s.spectrogram,
		"speech/{id}": s.speech,
	} {
		mux.HandleFunc("GET /api/runs/{run}/"+path, s.of(answer))
	}
	mux.HandleFunc("POST /api/runs/{run}/speak", s.of(s.speak))
	return mux
}

// of finds the run of a request.
func (s *Server) of(answer func(http.ResponseWriter, *http.Request, *run)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		r := s.find(number(q.PathValue("run"), -1))
		if r == nil {
			http.Error(w, "there is no such run", http.StatusNotFound)
			return
		}
		answer(w, q, r)
	}
}

// computing waits for its turn among what computes, and reports whether it came.
func (s *Server) computing(ctx context.Context) (done func(), ok bool) {
	late, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case s.heavy <- struct{}{}:
		return func() { <-s.heavy }, true
	case <-late.Done():
		return nil, false
	}
}
