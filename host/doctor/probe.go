package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/library"
	"github.com/xtts-host/xtts-host/gpu/nvml"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The probes. Each has an argument, which may be empty.
const (
	probeGPUs    = "gpus"
	probeLibrary = "library"     // of that name
	probeRuntime = "onnxruntime" // of that path
	probeCUDA    = "onnxruntime-cuda"
)

// answer is what a probe writes: a value, or an error for people.
type answer struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	Hint  string          `json:"hint,omitempty"`
}

// loaded is the value of the probes that load something.
type loaded struct{ Path, Version string }

// Probe does what could crash, and writes one JSON object about it. It is the whole life of a process that Examine has started.
func Probe(out io.Writer, name, arg string) error {
	value, err := probe(name, arg)
	var a answer
	if err != nil {
		a.Error, a.Hint = err.Error(), hint.Of(err)
	} else if a.Value, err = json.Marshal(value); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(a)
}

func probe(name, arg string) (any, error) {
	switch name {
	case probeGPUs:
		inventory, err := nvml.Open()
		if err != nil {
			return nil, err
		}
		defer inventory.Close()
		return gpu.Look(inventory)
	case probeLibrary:
		path, err := library.Find(arg)
		return loaded{Path: path}, err
	case probeRuntime, probeCUDA:
		if err := ort.Init(ort.Options{Library: arg, CUDA: name == probeCUDA}); err != nil {
			return nil, err
		}
		defer ort.Shutdown()
		return loaded{ort.Library(), ort.Version()}, nil
	}
	return nil, fmt.Errorf("no probe %q", name)
}

// probeTimeout is far more than a driver takes to come up, which is seconds on a machine with many GPUs.
const probeTimeout = 60 * time.Second

// ask runs a probe in a process of its own. When that ends without an answer, the error tells how.
func (c *Config) ask(ctx context.Context, name, arg string, value any) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	argv := append(c.Command[1:len(c.Command):len(c.Command)], name, arg)
	cmd := exec.CommandContext(ctx, c.Command[0], argv...)
	cmd.WaitDelay = time.Second
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var a answer
	switch jerr := json.Unmarshal(out.Bytes(), &a); {
	case ctx.Err() != nil:
		return fmt.Errorf("no answer: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("looking at it crashed: %w%s", err, lastLine(log.String()))
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

// lastLine is what a crash has to say, behind a colon.
func lastLine(log string) string {
	log = strings.TrimSpace(log)
	if log == "" {
		return ""
	}
	return ": " + log[strings.LastIndexByte(log, '\n')+1:]
}
