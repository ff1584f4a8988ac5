package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/gpu/library"
	"github.com/xtts-host/xtts-host/gpu/nccl"
	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The probes. Each has an argument, which may be empty.
const (
	probeGPUs      = "gpus"
	probeLibraries = "libraries"   // with these names, separated by spaces
	probeRuntime   = "onnxruntime" // from that path
	probeCUDA      = "onnxruntime-cuda"
	probeCompiler  = "nvrtc" // next to that library
	probeNCCL      = "nccl"  // next to that library
	probeRelay     = "relay" // as its request says
)

// Name is what the command line calls Serve for, with two arguments.
const Name = "probe"

// Self starts this program again.
func Self() (Command, error) {
	exe, err := os.Executable()
	return Command{exe, Name}, err
}

// Command starts a process that calls Serve with the two arguments that are appended.
type Command []string

// Machine queries the GPUs through the driver. A machine without a driver has none; that is not an error.
func (c Command) Machine(ctx context.Context) (m gpu.Machine, err error) {
	return m, c.ask(ctx, question{name: probeGPUs}, &m)
}

// Loaded is a library: the path of its file, and its version if it has one.
type Loaded struct{ Path, Version string }

// Found is the result for a library: its Path, or the Problem with loading it.
type Found struct{ Path, Problem string }

// Libraries loads shared libraries by name, as the dynamic loader finds them, and returns the result of each. If one
// crashes the process, each one is loaded in its own process, to find the one that crashes.
func (c Command) Libraries(ctx context.Context, names ...string) []Found {
	var all []Found
	err := c.ask(ctx, question{name: probeLibraries, arg: strings.Join(names, " ")}, &all)
	switch {
	case err == nil && len(all) == len(names):
		return all
	case len(names) == 1:
		return []Found{{Problem: fmt.Sprintf("%s: %v", names[0], err)}}
	}
	all = nil
	for _, name := range names {
		all = append(all, c.Libraries(ctx, name)...)
	}
	return all
}

// Runtime loads ONNX Runtime as training would: from path, or by search if path is empty. With cuda, the search looks
// for the version with CUDA first.
func (c Command) Runtime(ctx context.Context, path string, cuda bool) (l Loaded, err error) {
	q := question{name: probeRuntime, arg: path}
	if cuda {
		q.name = probeCUDA
	}
	return l, c.ask(ctx, q, &l)
}

// Compiler loads NVRTC, CUDA's compiler, from the folder of another library or as the dynamic loader finds it.
func (c Command) Compiler(ctx context.Context, beside string) (l Loaded, err error) {
	return l, c.ask(ctx, question{name: probeCompiler, arg: beside}, &l)
}

// NCCL loads the library that sums between GPUs, as Compiler does NVRTC.
func (c Command) NCCL(ctx context.Context, beside string) (l Loaded, err error) {
	return l, c.ask(ctx, question{name: probeNCCL, arg: beside}, &l)
}

// answer is the output of a probe: a value, or an error message.
type answer struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	Hint  string          `json:"hint,omitempty"`
}

// Serve runs a probe and writes one JSON object with its result. A process that a Command has started does nothing
// else.
func Serve(out io.Writer, name, arg string) error {
	value, err := serve(name, arg)
	var a answer
	if err != nil {
		a.Error, a.Hint = err.Error(), hint.Of(err)
	} else if a.Value, err = json.Marshal(value); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(a)
}

func serve(name, arg string) (any, error) {
	switch name {
	case probeGPUs:
		cards, err := inventory.Open()
		if err != nil {
			return nil, err
		}
		defer cards.Close()
		return gpu.Look(cards)
	case probeLibraries:
		var all []Found
		for name := range strings.FieldsSeq(arg) {
			path, err := library.Find(name)
			if err != nil {
				all = append(all, Found{Problem: err.Error()})
			} else {
				all = append(all, Found{Path: path})
			}
		}
		return all, nil
	case probeRuntime, probeCUDA:
		if err := ort.Init(ort.Options{Library: arg, CUDA: name == probeCUDA}); err != nil {
			return nil, err
		}
		defer ort.Shutdown()
		return Loaded{ort.Library(), ort.Version()}, nil
	case probeCompiler:
		compiler, err := nvrtc.Open(arg)
		if err != nil {
			return nil, err
		}
		return Loaded{compiler.Path(), compiler.Version()}, nil
	case probeNCCL:
		between, err := nccl.Open(arg)
		if err != nil {
			return nil, err
		}
		return Loaded{between.Path(), between.Version()}, nil
	case probeRelay:
		return serveRelay(arg, os.NewFile(firstExtra, "ring"))
	}
	return nil, fmt.Errorf("no probe %q", name)
}

// question describes a process to start.
type question struct {
	name, arg string
	env       []string   // in addition to this process's own
	files     []*os.File // as descriptors from firstExtra on
}

// firstExtra is the first descriptor after standard error.
const firstExtra = 3

// timeout is far more than the start of a driver takes, which is seconds on a machine with many GPUs.
const timeout = 60 * time.Second

// ask runs a probe in a separate process. If that ends without an answer, the error says how.
func (c Command) ask(ctx context.Context, q question, value any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	argv := append(c[1:len(c):len(c)], q.name, q.arg)
	cmd := exec.CommandContext(ctx, c[0], argv...)
	cmd.WaitDelay = time.Second
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), q.env...), q.files // of two equal variables, the last counts
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var a answer
	switch jerr := json.Unmarshal(out.Bytes(), &a); {
	case ctx.Err() != nil:
		return fmt.Errorf("no answer: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("the probe process crashed: %w%s", err, lastLine(log.String()))
	case jerr != nil:
		return fmt.Errorf("no answer: %w", jerr)
	case a.Error != "":
		return hinted(a.Hint, errors.New(a.Error))
	}
	return json.Unmarshal(a.Value, value)
}

func hinted(advice string, err error) error {
	if advice == "" {
		return err
	}
	return hint.Errorf(advice, "%w", err)
}

// lastLine returns the last line of a crash's output, after a colon.
func lastLine(log string) string {
	log = strings.TrimSpace(log)
	if log == "" {
		return ""
	}
	return ": " + log[strings.LastIndexByte(log, '\n')+1:]
}
