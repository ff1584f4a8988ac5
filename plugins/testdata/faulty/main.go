// Faulty is a plugin that works correctly except for the faults that XTTS_PLUGIN_FAULT lists, separated by commas.
// host/run/faults_test.go has the list, and checks the effect of each on a run. Its stage mix applies a gain that is
// drawn from the row's key, so a row that is processed twice, or not at all, changes the losses of a run. The stage
// tint is the same without the lengths among its outputs, keyed is the same with a wrong declaration, and idle answers
// without having worked.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// faults are the selected faults. Each occurs once, after the previous ones, and then leaves a file of its name in
// marks. Without marks, the first one occurs in every process.
var faults, marks = strings.Split(os.Getenv("XTTS_PLUGIN_FAULT"), ","), os.Getenv("XTTS_PLUGIN_FAULT_MARKS")

// stderr is descriptor 2: go-plugin replaces the variable of package os.
var stderr = os.Stderr

var (
	injecting sync.Mutex          // guards the rest
	last      bool                // the host will end the process because of its fault: it injects no other one
	calls     = map[uint64]bool{} // in flight, by id
	waiting   = map[uint64]bool{} // calls whose results the host must have before the next fault, which might hide them
)

// passing are the faults after which the process continues.
var passing = []string{"fails", "gives NaN", "floods its stderr", "is far too loud", "gives zeros"}

// inject reports whether the named fault must occur now.
func inject(name string) bool {
	if marks == "" {
		return faults[0] == name
	}
	injecting.Lock()
	defer injecting.Unlock()
	for _, fault := range faults {
		mark := filepath.Join(marks, fault)
		if _, err := os.Stat(mark); err == nil {
			continue
		}
		if fault != name || last || len(waiting) > 0 || os.WriteFile(mark, nil, 0o600) != nil {
			return false
		}
		last, waiting = !slices.Contains(passing, name), maps.Clone(calls)
		return true
	}
	return false
}

// began and ended follow a call.
func began(id uint64) {
	injecting.Lock()
	defer injecting.Unlock()
	calls[id] = true
}

func ended(id uint64) {
	injecting.Lock()
	defer injecting.Unlock()
	delete(calls, id)
	delete(waiting, id)
}

func crash() {
	fmt.Fprintln(stderr, "segmentation fault in libmixer.so")
	os.Exit(3)
}

func hang() { time.Sleep(time.Hour) }

func main() {
	if inject("crash at start") {
		crash()
	}
	if inject("hang at start") {
		hang()
	}
	if inject("writes to stdout") {
		fmt.Println("libmixer 2.1 (c) 2019")
	}
	go func() { // the lifeline
		if inject("ignores its lifeline") {
			return
		}
		io.Copy(io.Discard, os.NewFile(stage.LifelineFD, "lifeline"))
		os.Exit(0)
	}()
	id := stage.Plugin{ID: "faulty", Version: "1.0.0", Stages: map[string]func() stage.Stage{
		"mix": func() stage.Stage { return new(mix) }, "tint": func() stage.Stage { return new(mix) },
		"keyed": func() stage.Stage { return new(mix) }, "idle": func() stage.Stage { return idle{} },
	}}
	if inject("reports another version") {
		id.Version = "0.9.0"
	}
	inner, err := stage.NewServer(id, os.NewFile(stage.RingFD, "ring"), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Fprintln(stderr, err)
		os.Exit(1)
	}
	set := plugin.PluginSet{stage.PluginName: &entry{server: &server{Server: inner}}}
	versions := map[int]plugin.PluginSet{1: set, 2: set}
	switch {
	case inject("speaks another protocol"):
		versions = map[int]plugin.PluginSet{3: set}
	case inject("has protocol 1 only"):
		delete(versions, 2)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  stage.Handshake,
		VersionedPlugins: versions,
		GRPCServer:       plugin.DefaultGRPCServer,
		Logger:           hclog.NewNullLogger(),
	})
}

// server is the stage server with faults of the protocol.
type server struct {
	*stage.Server
	ring *ring.Ring // the whole ring, which every plugin maps
	text []uint64   // by bucket: the offset in a slot of a tensor that no stage has, text_sequences or that of a test
}

// entry connects the server to go-plugin.
type entry struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

func (e *entry) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	stagepb.RegisterStageServer(g, e.server)
	return nil
}

func (e *entry) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not a client")
}

func (s *server) Configure(ctx context.Context, req *stagepb.ConfigureRequest) (*stagepb.ConfigureResponse, error) {
	for _, l := range req.Layouts {
		at := slices.IndexFunc(l.Tensors,
			func(t *stagepb.Tensor) bool { return t.Name == "text_sequences" || t.Name == "bystander" })
		s.text = append(s.text, l.Tensors[max(at, 0)].Offset)
	}
	return s.Server.Configure(ctx, req)
}

func (s *server) Attach(ctx context.Context, req *stagepb.AttachRequest) (*stagepb.AttachResponse, error) {
	fd, err := unix.FcntlInt(stage.RingFD, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if s.ring, err = ring.Attach(os.NewFile(uintptr(fd), "ring"), int(req.Slots), int(req.SlotSize)); err != nil {
		return nil, err
	}
	return s.Server.Attach(ctx, req)
}

func (s *server) Drain(ctx context.Context, req *stagepb.DrainRequest) (*stagepb.DrainResponse, error) {
	if inject("hangs when asked to drain") {
		hang()
	}
	return s.Server.Drain(ctx, req)
}

func (s *server) Process(stream grpc.BidiStreamingServer[stagepb.Call, stagepb.Result]) error {
	return s.Server.Process(&faultyStream{BidiStreamingServer: stream, server: s, calls: map[uint64]*stagepb.Call{}})
}

// faultyStream sends other results than the stage's.
type faultyStream struct {
	grpc.BidiStreamingServer[stagepb.Call, stagepb.Result]
	server *server

	mu    sync.Mutex // guards the rest
	calls map[uint64]*stagepb.Call
	sent  int
	late  *stagepb.Call // to be written to when the next call comes
}

func (s *faultyStream) Recv() (*stagepb.Call, error) {
	c, err := s.BidiStreamingServer.Recv()
	if err == nil {
		began(c.Id)
		if c.Report && inject("draws otherwise when asked") {
			c.RowKeys[0] ^= 1
		}
		s.mu.Lock()
		s.calls[c.Id] = c
		if s.late != nil && s.late.Slot != c.Slot {
			s.scribble(s.late)
			s.late = nil
		}
		s.mu.Unlock()
	}
	return c, err
}

func (s *faultyStream) Send(r *stagepb.Result) error {
	defer ended(r.Id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent++; s.sent%every != 0 {
		return s.BidiStreamingServer.Send(r)
	}
	call := s.calls[r.Id]
	own := int(call.Slot)
	switch {
	case inject("overwrites the whole ring"):
		s.clear(func(slot int) bool { return true })
	case inject("overwrites other slots"):
		s.clear(func(slot int) bool { return slot != own })
	case inject("changes a tensor that is not its own"):
		s.scribble(call)
	case inject("changes another slot"):
		s.scribble(s.another(own))
	case inject("writes after its answer"):
		s.late = call
	case s.sent > 1 && inject("answers an old call"):
		r.Id--
	case inject("answers for an unknown call"):
		r.Id += 1000
	case inject("rejects a row that is not there"):
		r.BadRows = []*stagepb.BadRow{{Row: 4, Reason: "too loud"}}
	case inject("reports draws unasked"):
		r.Draws = []*stagepb.Draws{{Row: 0, Json: "{}"}}
	case inject("answers twice"):
		if err := s.BidiStreamingServer.Send(r); err != nil {
			return err
		}
	}
	return s.BidiStreamingServer.Send(r)
}

// scribble changes the first text of the batch of a call. No guard shows it.
func (s *faultyStream) scribble(c *stagepb.Call) {
	s.server.ring.Slot(int(c.Slot))[s.server.text[c.Bucket]] ^= 1
}

// another returns an earlier call for another slot.
func (s *faultyStream) another(slot int) *stagepb.Call {
	for _, c := range s.calls {
		if int(c.Slot) != slot {
			return c
		}
	}
	panic("there was no call for another slot")
}

func (s *faultyStream) clear(which func(slot int) bool) {
	for i := range s.server.ring.Slots() {
		if which(i) {
			clear(s.server.ring.Slot(i))
		}
	}
}

// flood writes 3 MB to the standard error: lines, and one line without an end.
func flood() {
	lines := strings.Repeat(strings.Repeat("x", 999)+"\n", 1000)
	flooded.Do(func() { io.WriteString(stderr, lines+lines+strings.Repeat("y", 1<<20)) })
}

// flooded has a process write so much only once.
var flooded sync.Once
