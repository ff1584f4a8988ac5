// Package stagetest tests a stage against the rules of docs/plugin-protocol.md in an ordinary Go test:
//
//	func TestGain(t *testing.T) {
//		stagetest.Run(t, func() stage.Stage { return new(Gain) }, stagetest.Options{
//			Manifest: "plugin.json",
//			Stage:    "gain",
//			Config:   `{"max_db": 6}`,
//			Buckets:  []manifest.Bucket{{"T_wav": 4000}, {"T_wav": 8000}},
//		})
//	}
//
// The stage runs in the test process, so a debugger and the race detector work, but with the real protocol and real
// shared memory. The package checks the rules that hold for every stage: a stage writes only its outputs, and all of
// them; empty rows stay empty; the bits of a row depend only on the row and its key. The author's own tests must check
// the computed values.
package stagetest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Options selects the stage to test and its inputs.
type Options struct {
	// Manifest is the path of the plugin.json that declares the stage, with its ports and kind.
	Manifest string
	// Stage is the name of the stage in the manifest.
	Stage string
	// Config is the configuration of the instance, a JSON object, or empty.
	Config string
	// Features is the feature contract, for stages that read it, its sample rate for example. Without it, the stage
	// gets that of the embedded model: 22050 Hz, and mel spectrograms of 80 bands.
	Features manifest.Features
	// Files maps names of bundle files to absolute paths, for stages that read them.
	Files map[string]string
	// Data maps names of data folders to their paths. The stage gets the files there that the host lists. For
	// recordings that it needs, the default is a folder with three short recordings of noise, at the sample rate of
	// Features.
	Data map[string]string
	// Device is the UUID of the GPU for the stage, or empty for the CPU.
	Device string
	// Buckets gives a value to every symbol of the stage's ports except B. At least one bucket is required. Two or more
	// can find state that is kept from one shape to the next.
	Buckets []manifest.Bucket
}

// defaultFeatures is the feature contract of the embedded model.
var defaultFeatures = manifest.Features{
	SampleRate: 22050, NFFT: 1024, WinLength: 1024, HopLength: 256, Window: "hann", Center: true, PadMode: "constant",
	Power: 1, NMels: 80, MelScale: "slaney", MelNorm: "slaney", FMax: 11025, Log: "ln", LogFloor: 1e-5,
	Normalization: &manifest.Normalization{Mean: -5.6, Std: 2.8},
}

// rows is the number of rows of the test batches. Row 0 is full, row 1 is empty, the others have different lengths.
const rows = 5

// slots is the number of batches in flight at once.
const slots = 3

// Run tests the stage that newStage returns. Inputs are noise in [-1, 1) and small integers.
func Run(t *testing.T, newStage func() stage.Stage, o Options) {
	t.Helper()
	k := newKit(t, newStage, o)
	for bucket := range o.Buckets {
		t.Run(fmt.Sprintf("bucket %d", bucket), func(t *testing.T) { k.checkBucket(t, bucket) })
	}
	t.Run("mixed buckets", k.checkMixed)
}

// kit is a configured stage, served with the real protocol, and the host's side of the memory.
type kit struct {
	spec    manifest.Stage
	layouts []ring.Layout
	ring    *ring.Ring
	stream  grpc.BidiStreamingClient[stagepb.Call, stagepb.Result]
}

func newKit(t *testing.T, newStage func() stage.Stage, o Options) *kit {
	t.Helper()
	data, err := os.ReadFile(o.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := manifest.ParsePlugin(o.Manifest, data)
	if err != nil {
		t.Fatal(err)
	}
	spec, ok := plugin.Stage(o.Stage)
	if !ok {
		t.Fatalf("%s declares no stage %q", o.Manifest, o.Stage)
	}
	if len(o.Buckets) == 0 {
		t.Fatal("Options.Buckets is empty")
	}
	var config map[string]any
	if o.Config != "" {
		if err := json.Unmarshal([]byte(o.Config), &config); err != nil {
			t.Fatalf("Options.Config: %v", err)
		}
	}
	if err := manifest.ValidateConfig(spec, config); err != nil {
		t.Fatal(err)
	}

	k := &kit{spec: spec}
	size := 0
	for i, bucket := range o.Buckets {
		l, err := layout(spec, bucket)
		if err != nil {
			t.Fatalf("Options.Buckets[%d]: %v", i, err)
		}
		k.layouts = append(k.layouts, l)
		size = max(size, l.Size)
	}
	if k.ring, err = ring.Create(slots, size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.ring.Close() })

	if o.Features == (manifest.Features{}) {
		o.Features = defaultFeatures
	}
	folders, err := dataFolders(t, spec, o)
	if err != nil {
		t.Fatalf("Options.Data: %v", err)
	}
	client := serve(t, stage.Plugin{ID: plugin.ID, Version: plugin.Version,
		Stages: map[string]func() stage.Stage{o.Stage: newStage}}, k.ring)
	request := k.configuration(o)
	request.Instances[0].Data = folders
	if _, err := client.Configure(t.Context(), request); err != nil {
		t.Fatalf("configure: %v", err)
	}
	attach := &stagepb.AttachRequest{Slots: slots, SlotSize: uint64(k.ring.SlotSize())}
	if _, err := client.Attach(t.Context(), attach); err != nil {
		t.Fatalf("attach: %v", err)
	}
	// The stream outlives t's context, which ends before the cleanup functions that stop the server.
	if k.stream, err = client.Process(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return k
}

// serve serves the plugin over an in-memory connection until the test ends.
func serve(t *testing.T, p stage.Plugin, r *ring.Ring) stagepb.StageClient {
	t.Helper()
	fd, err := unix.FcntlInt(r.File().Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	service, err := stage.NewServer(p, os.NewFile(uintptr(fd), "ring"), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(stage.MaxMessage))
	stagepb.RegisterStageServer(server, service)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:stage", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(
			func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return stagepb.NewStageClient(conn)
}

func (k *kit) configuration(o Options) *stagepb.ConfigureRequest {
	features, err := json.Marshal(o.Features)
	if err != nil {
		panic(err) // a struct of plain fields
	}
	in := &stagepb.Instance{
		Name: "test", Stage: o.Stage, ConfigJson: o.Config, Inputs: map[string]string{}, Outputs: map[string]string{},
	}
	for _, p := range k.spec.Inputs {
		in.Inputs[p.Name] = tensorName(p.Name)
	}
	for _, p := range k.spec.Outputs {
		in.Outputs[p.Name] = tensorName(p.Name)
	}
	req := &stagepb.ConfigureRequest{
		Instances: []*stagepb.Instance{in}, FeaturesJson: string(features), Files: o.Files, DeviceUuid: o.Device,
	}
	for _, l := range k.layouts {
		pl := new(stagepb.Layout)
		for _, t := range l.Tensors {
			pt := &stagepb.Tensor{Name: t.Name, Dtype: string(t.DType), Pad: t.Pad, Offset: uint64(t.Offset)}
			for _, d := range t.Shape {
				pt.Shape = append(pt.Shape, uint64(d))
			}
			pl.Tensors = append(pl.Tensors, pt)
		}
		req.Layouts = append(req.Layouts, pl)
	}
	return req
}
