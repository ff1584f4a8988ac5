package prometheus

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/health"
)

const (
	// mostScrapes is the number of scrapes at a time. More are answered with an error.
	mostScrapes = 4
	// limit is for reading a request and for writing its answer.
	limit = 10 * time.Second
)

// Server serves the figures of a run. It is a best-effort sink.
type Server struct {
	taker
	health   *health.Judge
	unusable atomic.Pointer[func() int] // clips; nil if they are not known

	listener net.Listener
	server   http.Server
	ended    chan struct{}
}

// Listen serves at an address from now on, until Close. version is that of the program.
func Listen(address, version string) (*Server, error) {
	l, err := Flag.Listen(address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		taker:    taker{figures: newFigures(), version: version, now: time.Now},
		health:   health.New(),
		listener: l, ended: make(chan struct{}),
	}
	mux := http.NewServeMux() // another path is not found
	mux.Handle("GET /healthz", probe(s.health.Alive))
	mux.Handle("GET /readyz", probe(s.health.Ready))
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: mostScrapes, Timeout: limit,
	}))
	s.server = http.Server{
		Handler: mux, ReadTimeout: limit, WriteTimeout: 2 * limit, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	go func() {
		defer close(s.ended)
		s.server.Serve(l) // until it is closed
	}()
	return s, nil
}

// probe answers with a line, and with status 503 unless what it says is good.
func probe(ask func() (line string, good bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line, good := ask()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if !good {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, line+"\n")
	})
}

// URL is where the figures are.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Quarantined takes what counts the clips that cannot be used. A nil Server ignores it.
func (s *Server) Quarantined(count func() int) {
	if s != nil {
		s.unusable.Store(&count)
	}
}

// Take sets the figures.
func (s *Server) Take(events []event.Event) error {
	s.health.Take(events)
	for _, e := range events {
		s.take(e)
	}
	if count := s.unusable.Load(); count != nil {
		s.quarantined.Set(float64((*count)()))
	}
	return nil
}

// Close ends the server. A scrape under way gets its answer, unless that takes long.
func (s *Server) Close() error {
	late, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.server.Shutdown(late)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.server.Close()
	}
	<-s.ended
	return err
}
