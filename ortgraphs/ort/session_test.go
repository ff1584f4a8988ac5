package ort_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestSessionDescribesItself(t *testing.T) {
	s := graph(t, "types")
	shape := manifest.Shape{manifest.Sym("B"), manifest.Fixed(3), manifest.Fixed(-1)}
	var in, out []ort.ValueInfo
	for _, d := range []manifest.DType{
		manifest.F32, manifest.F64, manifest.F16, manifest.BF16, manifest.I32, manifest.I64, manifest.U8, manifest.Bool,
	} {
		in = append(in, ort.ValueInfo{Name: string(d), DType: d, Shape: shape})
		out = append(out, ort.ValueInfo{Name: string(d) + "_out", DType: d, Shape: shape})
	}
	if !reflect.DeepEqual(s.Inputs(), in) || !reflect.DeepEqual(s.Outputs(), out) {
		t.Errorf("inputs  %v\nwant    %v\noutputs %v\nwant    %v", s.Inputs(), in, s.Outputs(), out)
	}
	if got := graph(t, "sgd").Inputs()[2]; len(got.Shape) != 0 || got.Name != "lr" {
		t.Errorf("scalar input: %+v", got)
	}
}

func TestNewSessionErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config ort.SessionConfig
		want   string
	}{
		{"nothing", ort.SessionConfig{}, "open graph: needs either a path or a model"},
		{"both", ort.SessionConfig{Path: "a/b.onnx", Model: []byte{1}}, "open b.onnx: needs either a path or a model"},
		{"negative threads", ort.SessionConfig{Path: "b.onnx", Threads: -1}, "open b.onnx: -1 threads"},
		{
			"no file", ort.SessionConfig{Path: "testdata/none.onnx"},
			"open none.onnx: Load model from testdata/none.onnx failed",
		},
		{
			"not a graph", ort.SessionConfig{Path: "testdata/make_models.py", Name: "script"},
			"open script: Load model from testdata/make_models.py failed",
		},
		{"not a graph in memory", ort.SessionConfig{Model: []byte("none")}, "open graph: Failed to load model"},
		{
			"strings", ort.SessionConfig{Path: "testdata/strings.onnx"},
			`open strings.onnx: input "x" has an element type that is not supported (ONNX number 8)`,
		},
		{
			"sequence", ort.SessionConfig{Path: "testdata/sequence.onnx"},
			`open sequence.onnx: output "y" is not a tensor`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ort.NewSession(tt.config); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// Threads inherit the name of the thread that creates them, which distinguishes the session's threads from the Go
// runtime's.
func TestSessionThreads(t *testing.T) {
	for _, tt := range []struct{ threads, made int }{{1, 0}, {2, 1}, {3, 2}, {0, runtime.GOMAXPROCS(0) - 1}} {
		t.Run(fmt.Sprint(tt.threads), func(t *testing.T) {
			made := -1
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread() // never unlocked, so that the renamed thread ends with its goroutine
				name := fmt.Sprintf("ort-%d", unix.Gettid())
				if err := os.WriteFile("/proc/thread-self/comm", []byte(name), 0); err != nil {
					t.Error(err)
				}
				s, err := ort.NewSession(ort.SessionConfig{Path: "testdata/add_one.onnx", Threads: tt.threads})
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				made = threadsNamed(t, name) - 1
			}()
			if <-done; made != tt.made {
				t.Errorf("the session made %d threads, want %d", made, tt.made)
			}
		})
	}
}

func threadsNamed(t *testing.T, name string) int {
	files, err := filepath.Glob("/proc/self/task/*/comm")
	if err != nil || len(files) == 0 {
		t.Errorf("no list of threads: %v", err)
	}
	n := 0
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(b)) == name {
			n++
		}
	}
	return n
}

func TestSessionServesBindingsConcurrently(t *testing.T) {
	s := graph(t, "add_one")
	var wg sync.WaitGroup
	for i := range 8 {
		x, y := floats(t, []int{3}), floats(t, []int{3})
		b := ready(t, s, map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": y})
		wg.Go(func() {
			in, out := ort.View[float32](x.Bytes()), ort.View[float32](y.Bytes())
			for step := range 100 {
				in[1] = float32(1000*i + step)
				if err := b.Run(nil); err != nil || out[1] != in[1]+1 {
					t.Errorf("binding %d, step %d: %v + 1 = %v (%v)", i, step, in[1], out[1], err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestSessionCloseClosesBindings(t *testing.T) {
	s := graph(t, "add_one")
	x := floats(t, []int{1})
	b := ready(t, s, map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": x})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Run(nil); !errors.Is(err, ort.ErrClosed) {
		t.Errorf("run: %v", err)
	}
	if err := b.BindInput("x", x); !errors.Is(err, ort.ErrClosed) {
		t.Errorf("bind: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.NewBinding(); !errors.Is(err, ort.ErrClosed) {
		t.Errorf("new binding: %v", err)
	}
}

// TestCUDAOfTheCPULibrary: a session never silently uses the CPU, and the error says where to get the right library.
func TestCUDAOfTheCPULibrary(t *testing.T) {
	for _, tt := range []struct {
		name      string
		cuda      ort.CUDA
		err, hint string
	}{
		{
			"no provider", ort.CUDA{Stream: 8, Wait: func() error { return nil }}, ": it has no CUDA",
			"xtts-host fetch cuda fetches the library with CUDA",
		},
		{"no stream", ort.CUDA{}, "CUDA needs a stream", ""},
		{"no wait", ort.CUDA{Stream: 8}, "CUDA needs a function that waits", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ort.NewSession(ort.SessionConfig{Path: "testdata/add_one.onnx", CUDA: &tt.cuda})
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %s", err, tt.err)
			}
			var library *ort.LibraryError
			if errors.As(err, &library) != (tt.hint != "") ||
				tt.hint != "" && !strings.HasPrefix(library.Hint(), tt.hint) {
				t.Errorf("error %v without the hint %q", err, tt.hint)
			}
		})
	}
	var library *ort.LibraryError
	_, err := ort.NewArena(0, 1<<20)
	if !errors.As(err, &library) || !strings.HasSuffix(err.Error(), ": it has no CUDA") {
		t.Errorf("arena: %v", err)
	}
}
