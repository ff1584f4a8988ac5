package prometheus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/xtts-host/xtts-host/host/observe/event"
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
	unusable atomic.Pointer[func() int] // clips; nil if they are not known

	listener net.Listener
	server   http.Server
	ended    chan struct{}
}

// Listen serves at an address from now on, until Close. version is that of the program.
func Listen(address, version string) (*Server, error) {
	l, err := listen(address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		taker:    taker{figures: newFigures(), version: version, now: time.Now},
		listener: l, ended: make(chan struct{}),
	}
	mux := http.NewServeMux() // another path is not found
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
