package pytorch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/shared/hint"
)

//go:embed measure.py loader.py
var scripts embed.FS

// Config says what to measure.
type Config struct {
	Python  string // the program; "" means Find's
	Bundle  string // its folder
	Builder string // MODULE:FUNCTION that the bundle was exported from; "" for a preset
	// Device is "cpu", or the UUID of a GPU.
	Device  string
	Threads int    // on the CPU; 0 means PyTorch's default
	Folder  string // for the script and the compiler's cache; it exists
}

// Head describes the Python side.
type Head struct {
	Torch   string   `json:"torch"`
	Python  string   `json:"python"`
	CUDA    string   `json:"cuda,omitempty"`
	Device  string   `json:"device"`
	Threads int      `json:"threads"`
	Forms   []string `json:"forms"`
	// Slow are forms that take minutes to compile.
	Slow []string `json:"slow"`
	// Stages are those of the pipeline that can run there.
	Stages []string `json:"stages"`
}

// Request asks for one measurement.
type Request struct {
	DType   string `json:"dtype"`   // "f32", "tf32", "autocast" or "bf16"
	Form    string `json:"form"`    // one of Head.Forms and Head.Slow
	Batches string `json:"batches"` // folder of batches that are used in turn
	Steps   int    `json:"steps"`
	// Clips is the file of Clips to train on end to end, too; "" for steps on Batches only.
	Clips string `json:"clips,omitempty"`
}

// Measurement is the answer to a Request.
type Measurement struct {
	StepMs      []float64 `json:"step_ms"`      // of each whole step
	GradientsMs []float64 `json:"gradients_ms"` // of each forward and backward pass
	// PeakBytes is the peak memory of the tensors of forward and backward passes on a GPU, ReservedBytes what PyTorch's
	// allocator has taken for them. OptimizerBytes is the size of the optimizer's state, which is in neither.
	PeakBytes      int64   `json:"peak_bytes"`
	ReservedBytes  int64   `json:"reserved_bytes"`
	OptimizerBytes int64   `json:"optimizer_bytes"`
	StartS         float64 `json:"start_s"` // until it was compiled and warm
	// Loss is that of the first batch with the bundle's weights; nil if the module draws its dropout at random.
	Loss *float64 `json:"loss"`
	// ReferenceLoss is the same in f32, with the dropout of the exported graph; nil if the device cannot compute it.
	ReferenceLoss *float64 `json:"reference_loss"`
	EndToEnd
}

// EndToEnd are steps on batches that a DataLoader makes of audio files.
type EndToEnd struct {
	Ms       []float64 `json:"end_to_end_ms"` // of each step, with what it waited for its batch
	StagesOn string    `json:"stages_on"`     // "cpu": in the workers; "gpu"; the faster of both
	Workers  int       `json:"workers"`
	Failed   string    `json:"end_to_end_failed"` // why there are no steps
}

// Process is a Python process.
type Process struct {
	Head   Head
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
}

const installAdvice = "give --python the Python of an environment with PyTorch, such as .cache/venv-mine/bin/python"

// exportPython is the environment of the exporter's tests, below the working directory.
const exportPython = ".cache/venv-export/bin/python"

// Find returns the Python of the exporter's environment if the working directory has one, otherwise that of the PATH.
func Find() string {
	if path, err := filepath.Abs(exportPython); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "python3"
}

// Start starts a process. Its end, or that of ctx, ends it.
func Start(ctx context.Context, c Config) (*Process, error) {
	file, err := writeScripts(c.Folder)
	if err != nil {
		return nil, err
	}
	if c.Python == "" {
		c.Python = Find()
	}
	device := "cpu"
	if c.Device != device {
		device = "cuda"
	}
	cmd := exec.CommandContext(ctx, c.Python, file, "--bundle", c.Bundle, "--builder", c.Builder, "--device", device,
		"--threads", strconv.Itoa(c.Threads))
	p := &Process{cmd: cmd, stderr: &tail{}}
	cmd.Env = append(os.Environ(), "TORCHINDUCTOR_CACHE_DIR="+filepath.Join(c.Folder, "inductor"),
		"TRITON_CACHE_DIR="+filepath.Join(c.Folder, "triton"), "TMPDIR="+c.Folder, "PYTHONDONTWRITEBYTECODE=1")
	if device == "cuda" {
		cmd.Env = append(cmd.Env, "CUDA_VISIBLE_DEVICES="+c.Device)
	}
	cmd.Stderr, cmd.WaitDelay = p.stderr, 10*time.Second
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, hint.Errorf(installAdvice, "start Python: %w", err)
	}
	var head struct {
		Head
		Error, Hint string
	}
	if err := p.read(&head); err != nil {
		return nil, hint.Errorf(installAdvice, "%w", p.ended(err))
	}
	if head.Error != "" {
		return nil, errors.Join(hint.Errorf(head.Hint, "%s", head.Error), p.Close())
	}
	p.Head = head.Head
	return p, nil
}

// writeScripts writes the scripts to a folder, and returns the path of the one to start.
func writeScripts(folder string) (string, error) {
	for _, name := range []string{"measure.py", "loader.py"} {
		text, err := scripts.ReadFile(name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o666); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "measure.py"), nil
}

// Failure is the reason why a form could not be measured. The process lives.
type Failure string

func (f Failure) Error() string { return string(f) }

// Measure measures one form. A Failure means that this form does not run; after any other error the process has ended.
func (p *Process) Measure(r Request) (*Measurement, error) {
	if p.cmd == nil {
		return nil, errors.New("python: it has ended")
	}
	if err := json.NewEncoder(p.in).Encode(r); err != nil {
		return nil, p.ended(err)
	}
	var answer struct {
		Measurement
		Failed string
	}
	if err := p.read(&answer); err != nil {
		return nil, p.ended(err)
	}
	if answer.Failed != "" {
		return nil, Failure(answer.Failed)
	}
	return &answer.Measurement, nil
}

// ended waits for a process that does not answer, and returns why.
func (p *Process) ended(err error) error {
	path := p.cmd.Path
	return fmt.Errorf("%s: %w", path, cmp.Or(p.Close(), err))
}

// read reads the next line.
func (p *Process) read(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return errors.New("it ended without an answer")
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("its answer %q: %w", bytes.TrimSpace(line), err)
	}
	return nil
}

// Close ends the process and waits for it. The error has the last line that it printed. It is idempotent.
func (p *Process) Close() error {
	if p.cmd == nil {
		return nil
	}
	cmd := p.cmd
	p.cmd = nil
	p.in.Close()
	err := cmd.Wait()
	if last := p.stderr.last(); err != nil && last != "" {
		return fmt.Errorf("it ended: %w: %s", err, last)
	}
	if err != nil {
		return fmt.Errorf("it ended: %w", err)
	}
	return nil
}

// tail keeps the end of what is written.
type tail struct{ data []byte }

const tailBytes = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.data = append(t.data, b...)
	if extra := len(t.data) - tailBytes; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(b), nil
}

// last returns the last line that is not empty.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.data)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
