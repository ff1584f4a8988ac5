package feed

import (
	"context"
	"fmt"
	"sync"

	"github.com/xtts-host/xtts-host/host/stages/supervise"
)

// server answers the requests of a guest, many at a time.
type server struct {
	*line
	owner *Owner
	rank  int
	first int // slot of the whole ring
	slots int

	hurt   chan struct{}   // has a value when the guest is to be told of a damage
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex // guards calls
	calls map[uint64]context.CancelFunc
}

func newServer(o *Owner, k knocker, first, slots int) *server {
	s := &server{
		line: newLine(k.conn), owner: o, rank: k.rank, first: first, slots: slots,
		hurt: make(chan struct{}, 1), calls: map[uint64]context.CancelFunc{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// start tells the guest that the plugins are ready, and begins to answer.
func (s *server) start(workers []int) {
	s.tasks.Go(func() {
		defer s.cancel()
		defer s.conn.Close()
		s.tasks.Go(s.warn)
		if s.send(&answer{Kind: ready, Workers: workers}) != nil {
			return
		}
		for {
			var q request
			if s.receive(&q) != nil || s.take(&q) != nil {
				return // the rank has ended, and the meeting says so
			}
		}
	})
}

// stop ends the connection, and waits for the calls.
func (s *server) stop() {
	s.conn.Close() // first: the guest is not to hear that its calls end because of it
	s.cancel()
	s.tasks.Wait()
}

// tell has the guest told that the memory was damaged. It does not wait for the guest.
func (s *server) tell() {
	select {
	case s.hurt <- struct{}{}:
	default: // what it will be told includes this damage
	}
}

// warn tells the guest of damages until the connection ends.
func (s *server) warn() {
	for {
		select {
		case <-s.hurt:
			_ = s.send(&answer{Kind: damaged}) // of a guest that has ended, an error
		case <-s.ctx.Done():
			return
		}
	}
}

// take begins to do what a guest asks for. An error says that no rank asks for it.
func (s *server) take(q *request) error {
	if q.Kind == cancel {
		s.mu.Lock()
		defer s.mu.Unlock()
		if end := s.calls[q.ID]; end != nil {
			end()
		}
		return nil
	}
	pool, err := s.pool(q)
	if err != nil {
		return err
	}
	switch q.Kind {
	case call:
		return s.call(pool, q)
	case kick:
		s.tasks.Go(func() { pool.Kick(q.Process, q.Reason); s.send(&answer{Kind: answered, ID: q.ID}) })
	case kickAll:
		s.tasks.Go(func() { pool.KickAll(q.Reason); s.send(&answer{Kind: answered, ID: q.ID}) })
	default:
		return fmt.Errorf("%w: of kind %d", errRequest, q.Kind)
	}
	return nil
}

// call sends a batch of the guest to a stage. A guest has no other slots than its own.
func (s *server) call(pool supervise.Processes, q *request) error {
	if q.Call == nil || q.Call.Slot < 0 || q.Call.Slot >= s.slots {
		return fmt.Errorf("%w: a call for none of its slots", errRequest)
	}
	q.Call.Slot += s.first
	ctx, end := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.calls[q.ID] = end
	s.mu.Unlock()
	s.tasks.Go(func() {
		res, err := pool.Call(ctx, *q.Call)
		s.mu.Lock()
		delete(s.calls, q.ID)
		s.mu.Unlock()
		end()
		if supervise.Final(err) {
			s.owner.failed(fmt.Errorf("for rank %d: %w", s.rank, err))
		}
		s.send(&answer{
			Kind: answered, ID: q.ID, Result: res, Err: supervise.EncodeError(err),
		})
	})
	return nil
}
