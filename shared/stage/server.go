package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Server implements the stage protocol for a plugin. Serve runs it in a plugin process. A test may run it in the test
// process, with any gRPC server.
type Server struct {
	stagepb.UnimplementedStageServer
	plugin   Plugin
	ringFile *os.File
	log      *slog.Logger

	mu        sync.Mutex // guards the following
	layouts   []ring.Layout
	instances []*instance   // nil before Configure
	ring      *ring.Ring    // nil before Attach
	drained   chan struct{} // not nil once draining; closed when nothing is in flight
	inFlight  uint64
	calls     uint64
	failed    uint64
	closed    bool
}

// instance is one configured stage of the pipeline.
type instance struct {
	stage   Stage
	buckets []ports
	log     *slog.Logger
	batches sync.Pool // of *Batch
}

// NewServer returns the server of a plugin. ring is the memory that Attach will map; the server owns it. NewServer
// refuses a plugin without an ID, a version or stages.
func NewServer(p Plugin, ring *os.File, log *slog.Logger) (*Server, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return &Server{plugin: p, ringFile: ring, log: log}, nil
}

// Close closes the stages that implement io.Closer and unmaps the ring. Call it when no stream is open. It is
// idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if !s.closed {
		s.closed = true
		errs = append(errs, closeStages(s.instances))
	}
	if s.ring != nil {
		errs = append(errs, s.ring.Close())
	}
	return errors.Join(errs...)
}

// closeStages closes the stages that implement io.Closer.
func closeStages(instances []*instance) error {
	var errs []error
	for _, i := range instances {
		if c, ok := i.stage.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Info returns the plugin's ID and version.
func (s *Server) Info(context.Context, *stagepb.InfoRequest) (*stagepb.InfoResponse, error) {
	return &stagepb.InfoResponse{Id: s.plugin.ID, Version: s.plugin.Version}, nil
}

// Configure creates and configures the stage instances.
func (s *Server) Configure(ctx context.Context, req *stagepb.ConfigureRequest) (*stagepb.ConfigureResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances != nil {
		return nil, status.Error(codes.FailedPrecondition, "already configured")
	}
	setup, err := readSetup(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	instances := make([]*instance, 0, len(req.Instances))
	for _, in := range req.Instances {
		i, err := s.configure(ctx, setup, in)
		if err != nil {
			closeStages(instances) // err has the reason
			code := codes.InvalidArgument
			if errors.As(err, new(*panicError)) {
				code = codes.Internal
			}
			return nil, status.Error(code, fmt.Sprintf("instance %q: %s", in.Name, text(err)))
		}
		instances = append(instances, i)
	}
	s.layouts, s.instances = setup.layouts, instances
	return &stagepb.ConfigureResponse{}, nil
}

func (s *Server) configure(ctx context.Context, setup *setup, in *stagepb.Instance) (_ *instance, err error) {
	newStage, ok := s.plugin.Stages[in.Stage]
	if !ok {
		return nil, fmt.Errorf("plugin %s %s has no stage %q", s.plugin.ID, s.plugin.Version, in.Stage)
	}
	buckets, err := setup.bind(in)
	if err != nil {
		return nil, err
	}
	i := &instance{buckets: buckets, log: s.log.With("instance", in.Name)}
	i.batches.New = func() any { return new(Batch) }
	defer i.recover(&err)
	i.stage = newStage()
	return i, i.stage.Configure(ctx, &Config{
		Name:        in.Name,
		Stage:       in.Stage,
		Features:    setup.features,
		Files:       setup.files,
		Data:        dataFolders(in.Data),
		Device:      setup.device,
		MemoryLimit: setup.memoryLimit,
		Log:         i.log,
		raw:         in.ConfigJson,
		buckets:     buckets,
	})
}

// Attach maps the ring.
func (s *Server) Attach(_ context.Context, req *stagepb.AttachRequest) (*stagepb.AttachResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.instances == nil:
		return nil, status.Error(codes.FailedPrecondition, "attach before configure")
	case s.ring != nil:
		return nil, status.Error(codes.FailedPrecondition, "already attached")
	case req.SlotSize%ring.Align != 0:
		return nil, status.Errorf(codes.InvalidArgument, "slots of %d bytes are not aligned to %d",
			req.SlotSize, ring.Align)
	}
	for i, l := range s.layouts {
		if uint64(l.Size) > req.SlotSize {
			return nil, status.Errorf(codes.InvalidArgument,
				"a slot of %d bytes does not hold the %d bytes of bucket %d", req.SlotSize, l.Size, i)
		}
	}
	r, err := ring.Attach(s.ringFile, int(req.Slots), int(req.SlotSize))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	for _, i := range s.instances {
		if err := i.attach(r.Bytes()); err != nil {
			closeStages(s.instances) // stages that were attached use the ring until they are closed; err has the reason
			s.closed = true
			r.Close()
			return nil, status.Error(codes.InvalidArgument, text(err))
		}
	}
	s.ring = r
	return &stagepb.AttachResponse{}, nil
}

// attach passes the ring to the stage, if it is an Attacher.
func (i *instance) attach(memory []byte) (err error) {
	a, ok := i.stage.(Attacher)
	if !ok {
		return nil
	}
	defer i.recover(&err)
	return a.Attach(memory)
}

// Process handles the calls of the stream, up to GOMAXPROCS of them at a time.
func (s *Server) Process(stream grpc.BidiStreamingServer[stagepb.Call, stagepb.Result]) error {
	s.mu.Lock()
	r := s.ring
	s.mu.Unlock()
	if r == nil {
		return status.Error(codes.FailedPrecondition, "process before attach")
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()

	// A slot is in at most one call, so this many calls never block the reader.
	queue := make(chan *stagepb.Call, r.Slots())
	var send sync.Mutex // a stream allows one sender at a time
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for call := range queue {
				res := s.call(ctx, r, call)
				send.Lock()
				err := stream.Send(res)
				send.Unlock()
				s.finish(res)
				if err != nil {
					cancel() // the connection is lost: stop the other workers
				}
			}
		})
	}
	err := s.receive(ctx, stream, queue, &send)
	close(queue)
	if err != nil {
		cancel()
	}
	workers.Wait()
	return err
}

// receive passes calls from the stream to the queue until the host closes its side.
func (s *Server) receive(
	ctx context.Context, stream grpc.BidiStreamingServer[stagepb.Call, stagepb.Result], queue chan<- *stagepb.Call,
	send *sync.Mutex,
) error {
	for {
		call, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !s.accept() {
			send.Lock()
			err = stream.Send(&stagepb.Result{Id: call.Id, Error: "the plugin is draining"})
			send.Unlock()
			if err != nil {
				return err
			}
			continue
		}
		select {
		case queue <- call:
		case <-ctx.Done():
			s.finish(&stagepb.Result{Error: "the stream has ended"})
			return ctx.Err()
		}
	}
}

// call processes one batch and never panics. It reads instances and layouts without the mutex, because they do not
// change after Attach.
func (s *Server) call(ctx context.Context, r *ring.Ring, call *stagepb.Call) (res *stagepb.Result) {
	res = &stagepb.Result{Id: call.Id}
	switch {
	case int(call.Instance) >= len(s.instances):
		res.Error = fmt.Sprintf("call for instance %d of %d", call.Instance, len(s.instances))
		return res
	case int(call.Bucket) >= len(s.layouts):
		res.Error = fmt.Sprintf("call for bucket %d of %d", call.Bucket, len(s.layouts))
		return res
	case int(call.Slot) >= r.Slots():
		res.Error = fmt.Sprintf("call for slot %d of %d", call.Slot, r.Slots())
		return res
	case len(call.RowKeys)%KeySize != 0:
		res.Error = fmt.Sprintf("row keys of %d bytes are not a multiple of %d", len(call.RowKeys), KeySize)
		return res
	}
	i := s.instances[call.Instance]
	b := i.batches.Get().(*Batch)
	b.reset(call, i.buckets[call.Bucket], r.Slot(int(call.Slot)))
	start := time.Now()
	err := i.process(ctx, b)
	res.Nanoseconds = time.Since(start).Nanoseconds()
	if err == nil {
		res.Draws, err = b.draws()
	}
	if err != nil {
		res.Error = text(err)
		return res // do not reuse b: a goroutine of the stage may still hold it
	}
	res.BadRows = b.badRows()
	i.batches.Put(b)
	return res
}

func (i *instance) process(ctx context.Context, b *Batch) (err error) {
	defer i.recover(&err)
	return i.stage.Process(ctx, b)
}

// recover turns a panic of the stage into an error, which the host reports, and logs the stack.
func (i *instance) recover(err *error) {
	if value := recover(); value != nil {
		p := recovered(value)
		i.log.Info("panic in the stage", "panic", fmt.Sprint(p.value), "stack", p.stack)
		*err = p
	}
}

// accept counts a call as in flight, unless the plugin is draining.
func (s *Server) accept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained != nil {
		return false
	}
	s.inFlight++
	return true
}

// finish counts a call whose result has been sent.
func (s *Server) finish(res *stagepb.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	s.calls++
	if res.Error != "" {
		s.failed++
	}
	if s.drained != nil && s.inFlight == 0 {
		close(s.drained)
	}
}

// Drain refuses further calls and returns when the results of all accepted calls have been sent.
func (s *Server) Drain(ctx context.Context, _ *stagepb.DrainRequest) (*stagepb.DrainResponse, error) {
	s.mu.Lock()
	if s.drained == nil {
		s.drained = make(chan struct{})
		if s.inFlight == 0 {
			close(s.drained)
		}
	}
	drained := s.drained
	s.mu.Unlock()
	select {
	case <-drained:
		return &stagepb.DrainResponse{}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// Health reports that the process answers. A stage that cannot continue fails its calls instead.
func (s *Server) Health(context.Context, *stagepb.HealthRequest) (*stagepb.HealthResponse, error) {
	return &stagepb.HealthResponse{Serving: true}, nil
}

// Stats returns the counts of calls since the start.
func (s *Server) Stats(context.Context, *stagepb.StatsRequest) (*stagepb.StatsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &stagepb.StatsResponse{Calls: s.calls, Failed: s.failed, InFlight: s.inFlight}, nil
}

// text formats an error for the host, with its hint as the last line.
func text(err error) string {
	if h := hint.Of(err); h != "" {
		return err.Error() + "\nhint: " + h
	}
	return err.Error()
}
