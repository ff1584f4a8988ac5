// Package gpustagetest provides a data GPU for tests of stages. Without CUDA it is a fake card in Go: its memory is
// host memory, and ONNX Runtime's CPU provider computes. So golden numbers test the graph, and every step from the ring
// to the card and back, on any machine. A test that is built with the tag cuda computes on the GPU whose UUID is in the
// environment:
//
//	func TestMain(m *testing.M) { os.Exit(gpustagetest.Run(m)) }
//
//	open, uuid := gpustagetest.Open(t)
//	stage := &logmel.Stage{OpenGPU: open} // configure it with uuid as its device, and close it
package gpustagetest

import (
	"errors"
	"os"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/plugins/internal/datagpu"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage/engine"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// Variable is the environment variable with the GPU for tests with CUDA.
const Variable = "XTTS_HOST_TEST_GPU"

// Real returns the UUID of that GPU, or "" if the tests use a fake card.
func Real() string { return os.Getenv(Variable) }

// Run loads ONNX Runtime, with CUDA for a real GPU, runs the tests and returns the exit status.
func Run(m *testing.M) int {
	initialize := orttest.Init
	if Real() != "" {
		initialize = func() error { return ort.Init(ort.Options{CUDA: true}) }
	}
	return orttest.RunWith(m, initialize)
}

// Open returns a function that opens the test's GPU, and its UUID.
func Open(t testing.TB) (gpustage.Opener, string) {
	if uuid := Real(); uuid != "" {
		return datagpu.Open, uuid
	}
	card := Card(t)
	return func(cfg *stage.Config) (gpustage.Device, error) {
		if cfg.Device != card.Device().UUID {
			return nil, errors.New("that is not the test's GPU")
		}
		return engine.New(engine.Config{Context: card, OnHost: true, MemoryLimit: int(cfg.MemoryLimit)})
	}, card.Device().UUID
}

// Card returns a fake card that reports every misuse, and every resource that is still open when it is closed.
func Card(t testing.TB) gpu.Context {
	return gputest.New(gputest.Config{Misuse: func(err error) { t.Error(err) }})
}
