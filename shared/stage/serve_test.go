package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// The test binary is its own plugin: if this variable is set, it serves instead of testing.
const serveVariable = "XTTS_PLUGIN_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		Serve(Plugin{ID: "test", Version: "1.2.3", Stages: map[string]func() Stage{
			"scale": func() Stage { return new(scale) },
		}})
	}
	os.Exit(m.Run())
}

// scale multiplies the port x by a factor. Special values of x make it fail.
type scale struct {
	config struct {
		Factor float32 `json:"factor"`
		Note   string  `json:"note"`
	}
	log *slog.Logger
}

func (s *scale) Configure(_ context.Context, cfg *Config) error {
	s.config.Factor = 2
	s.log = cfg.Log
	if err := cfg.Decode(&s.config); err != nil {
		return err
	}
	if s.config.Factor == 0 {
		return hinted{fmt.Errorf("factor is 0"), "take another factor"}
	}
	syscall.Write(1, []byte("a native library prints\n"))
	cfg.Log.Info("configured", "factor", s.config.Factor, "note_bytes", len(s.config.Note))
	return nil
}

func (s *scale) Process(ctx context.Context, b *Batch) error {
	x := b.Float32("x")
	width := b.Shape("x")[1]
	for row := range b.Rows() {
		switch v := x[row*width]; {
		case math.IsInf(float64(v), 0):
			panic("infinite")
		case math.IsNaN(float64(v)):
			b.Reject(row, "not a number")
		case v == -1:
			return fmt.Errorf("row %d is -1", row)
		case v == -2:
			<-ctx.Done()
			return ctx.Err()
		}
		for i := range x[row*width : (row+1)*width] {
			x[row*width+i] *= s.config.Factor
		}
		b.Report(row, "config", &s.config)
		if from, ok := b.Source(row); ok {
			b.Report(row, "start", from.Start)
		}
	}
	return nil
}

type hinted struct {
	error
	hint string
}

func (h hinted) Hint() string { return h.hint }

// process is a plugin process under test with the host's side of its resources.
type process struct {
	client   *plugin.Client
	stage    stagepb.StageClient
	ring     *ring.Ring
	lifeline *os.File
	cmd      *exec.Cmd
	stderr   *logBuffer
}

// logBuffer keeps what the process logged. An unread pipe would block the process.
type logBuffer struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// line waits for a line that contains want.
func (l *logBuffer) line(t *testing.T, want string) string {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		for line := range strings.Lines(text) {
			if strings.Contains(line, want) && strings.HasSuffix(line, "\n") {
				return line
			}
		}
	}
	t.Fatalf("no log line contains %q", want)
	return ""
}

var testLayout = ring.NewLayout([]ring.Tensor{{Name: "wave", DType: manifest.F32, Shape: []int{2, 4}}}, nil)

func start(t *testing.T) *process {
	t.Helper()
	p, err := startFor(t, PluginSets())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// startFor starts the plugin for a host that has these versions of the protocol.
func startFor(t *testing.T, versions map[int]plugin.PluginSet) (*process, error) {
	t.Helper()
	r, err := ring.Create(3, testLayout.Size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	lifeRead, lifeWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lifeWrite.Close() })
	log := new(logBuffer)
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{serveVariable + "=1", "GORACE=" + os.Getenv("GORACE"), "PLUGIN_UNIX_SOCKET_DIR=" + t.TempDir()}
	cmd.ExtraFiles = []*os.File{r.File(), lifeRead}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  Handshake,
		VersionedPlugins: versions,
		Cmd:              cmd,
		SkipHostEnv:      true,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Off}),
		Stderr:           log,
	})
	t.Cleanup(client.Kill)
	p := &process{client: client, ring: r, lifeline: lifeWrite, cmd: cmd, stderr: log}
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	lifeRead.Close()
	raw, err := protocol.Dispense(PluginName)
	if err != nil {
		t.Fatal(err)
	}
	p.stage = raw.(stagepb.StageClient)
	return p, nil
}

func configureRequest(config string) *stagepb.ConfigureRequest {
	return &stagepb.ConfigureRequest{
		Instances: []*stagepb.Instance{{Name: "first", Stage: "scale", ConfigJson: config,
			Inputs: map[string]string{"x": "wave"}, Outputs: map[string]string{"x": "wave"}}},
		Layouts: []*stagepb.Layout{{Tensors: []*stagepb.Tensor{{Name: "wave", Dtype: "f32", Shape: []uint64{2, 4}}}}},
	}
}

func (p *process) exited(t *testing.T) bool {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if p.client.Exited() {
			return true
		}
	}
	return false
}

func TestServeBatches(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	info, err := p.stage.Info(ctx, &stagepb.InfoRequest{})
	if err != nil || info.Id != "test" || info.Version != "1.2.3" {
		t.Fatalf("info %v, %v", info, err)
	}
	// A configuration far above gRPC's default limit of 4 MiB must arrive.
	config, _ := json.Marshal(map[string]any{"factor": 3, "note": strings.Repeat("x", 8<<20)})
	if _, err := p.stage.Configure(ctx, configureRequest(string(config))); err != nil {
		t.Fatal(err)
	}
	p.stderr.line(t, "a native library prints") // on stderr, where it is harmless
	line := p.stderr.line(t, "note_bytes")
	var entry map[string]any
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		t.Fatal(err)
	}
	if entry["@level"] != "info" || entry["@message"] != "configured" || entry["instance"] != "first" ||
		entry["note_bytes"] != 8.0*(1<<20) {
		t.Errorf("log entry %v", entry)
	}
	if _, err := time.Parse(hclog.TimeFormatJSON, entry["@timestamp"].(string)); err != nil {
		t.Error(err)
	}

	if _, err := p.stage.Attach(ctx, &stagepb.AttachRequest{
		Slots: 3, SlotSize: uint64(p.ring.SlotSize()),
	}); err != nil {
		t.Fatal(err)
	}
	stream, err := p.stage.Process(ctx)
	if err != nil {
		t.Fatal(err)
	}
	serveThree(t, p, stream)
	endService(t, p, stream)
}

// serveThree has the stage process a batch, one that makes it panic, and one with a bad row.
func serveThree(t *testing.T, p *process, stream grpc.BidiStreamingClient[stagepb.Call, stagepb.Result]) {
	t.Helper()
	for slot, first := range []uint32{
		0, math.Float32bits(float32(math.Inf(1))), math.Float32bits(float32(math.NaN())),
	} {
		x := p.ring.Slot(slot)
		for i := range 8 {
			putFloat(x, i, math.Float32bits(float32(i)))
		}
		if slot > 0 {
			putFloat(x, 4, first)
		}
		if err := stream.Send(&stagepb.Call{
			Id: uint64(slot), Slot: uint32(slot), RowKeys: make([]byte, 2*KeySize),
		}); err != nil {
			t.Fatal(err)
		}
	}
	results := make([]*stagepb.Result, 3)
	for range results {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		results[r.Id] = r
	}
	if r := results[0]; r.Error != "" || len(r.BadRows) != 0 || r.Nanoseconds <= 0 {
		t.Errorf("result %v", r)
	}
	for i := range 8 {
		if got, want := getFloat(p.ring.Slot(0), i), float32(3*i); got != want {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
	if r := results[1]; r.Error != "panic: infinite (serve_test.go:69)" {
		t.Errorf("result of a panic: %v", r)
	}
	if log := p.stderr.line(t, "panic in the stage"); !strings.Contains(log, "(*scale).Process") {
		t.Errorf("the log has no stack: %s", log)
	}
	r := results[2]
	if r.Error != "" || len(r.BadRows) != 1 || r.BadRows[0].Row != 1 || r.BadRows[0].Reason != "not a number" {
		t.Errorf("result with a bad row: %v", r)
	}
}

// endService drains the stage after serveThree, and ends its process.
func endService(t *testing.T, p *process, stream grpc.BidiStreamingClient[stagepb.Call, stagepb.Result]) {
	t.Helper()
	ctx := t.Context()
	if _, err := p.stage.Drain(ctx, &stagepb.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&stagepb.Call{Id: 9, RowKeys: make([]byte, 2*KeySize)}); err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || r.Id != 9 || !strings.Contains(r.Error, "draining") {
		t.Errorf("a call after drain: %v, %v", r, err)
	}
	if s, err := p.stage.Stats(ctx, &stagepb.StatsRequest{}); err != nil || s.Calls != 3 || s.Failed != 1 ||
		s.InFlight != 0 {
		t.Errorf("stats %v, %v", s, err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("end of the stream: %v", err)
	}
	p.client.Kill()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d after a clean shutdown", code)
	}
}

func TestServeExits(t *testing.T) {
	t.Run("end of the lifeline", func(t *testing.T) {
		p := start(t)
		p.lifeline.Close()
		if !p.exited(t) {
			t.Error("the process still runs")
		}
	})
	t.Run("interrupt is ignored, terminate is not", func(t *testing.T) {
		p := start(t)
		p.cmd.Process.Signal(os.Interrupt)
		if _, err := p.stage.Info(t.Context(), &stagepb.InfoRequest{}); err != nil {
			t.Fatalf("after SIGINT: %v", err)
		}
		p.cmd.Process.Signal(syscall.SIGTERM)
		if !p.exited(t) {
			t.Error("the process still runs after SIGTERM")
		}
	})
	t.Run("a busy stage does not prevent the exit", func(t *testing.T) {
		p := start(t)
		ctx := t.Context()
		if _, err := p.stage.Configure(ctx, configureRequest("")); err != nil {
			t.Fatal(err)
		}
		if _, err := p.stage.Attach(ctx, &stagepb.AttachRequest{
			Slots: 3, SlotSize: uint64(p.ring.SlotSize()),
		}); err != nil {
			t.Fatal(err)
		}
		stream, err := p.stage.Process(ctx)
		if err != nil {
			t.Fatal(err)
		}
		putFloat(p.ring.Slot(0), 0, math.Float32bits(-2))
		if err := stream.Send(&stagepb.Call{RowKeys: make([]byte, 2*KeySize)}); err != nil {
			t.Fatal(err)
		}
		p.lifeline.Close()
		if !p.exited(t) {
			t.Error("the process still runs")
		}
	})
}

func TestServeWithoutHost(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{serveVariable + "=1"}
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "hint: ") {
		t.Errorf("started by hand: %v\n%s", err, out)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = []string{serveVariable + "=1", Handshake.MagicCookieKey + "=" + Handshake.MagicCookieValue}
	out, err = cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "descriptor 4 is not the lifeline") {
		t.Errorf("started without descriptors: %v\n%s", err, out)
	}
}

func TestLogKeys(t *testing.T) {
	var out strings.Builder
	log := newLogger(&out)
	log.Debug("one", "level", 5, "time", "noon")
	log.Warn("two")
	log.Error("three")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var levels []string
	for _, line := range lines {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		levels = append(levels, e["@level"].(string))
	}
	if want := []string{"debug", "warn", "error"}; !slices.Equal(levels, want) {
		t.Errorf("levels %v, want %v", levels, want)
	}
	if !strings.Contains(lines[0], `"level":5,"time":"noon"`) {
		t.Errorf("an author's own keys were changed: %s", lines[0])
	}
}
