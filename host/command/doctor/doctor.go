package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/command/probe"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Config has the requested settings. Place and Command are required.
type Config struct {
	// Command starts the processes that load libraries which could crash.
	Command probe.Command
	// Place decides the placement as training would.
	Place func(gpu.Machine) (place.Placement, error)
	// OnCPU says that the CPU was requested: then nothing about GPUs is Bad.
	OnCPU bool
	// Library is the path of ONNX Runtime; if it is empty, doctor searches for it as training does.
	Library string
	// Sandbox is the requested isolation of plugins.
	Sandbox sandbox.Mode
	// Version is that of this program.
	Version string
}

// Examine inspects the machine. It takes some seconds on a machine with many GPUs.
func Examine(ctx context.Context, c Config) *Report {
	e := &examination{Config: c, report: &Report{Version: 1, Works: true, GPUs: []GPU{}, Links: []gpu.CardLink{}}}
	var driver error
	e.machine, driver = c.Command.Machine(ctx)
	e.placement, e.refusal = c.Place(e.machine)
	e.gpus = !e.placement.Model.OnCPU()

	e.program()
	e.driver(driver)
	e.libraries(ctx)
	e.cards()
	e.system()
	e.roles(driver)
	return e.report
}

// examination is an inspection in progress.
type examination struct {
	Config
	machine   gpu.Machine
	placement place.Placement
	refusal   error // of the placement
	gpus      bool  // training will use GPUs
	report    *Report
}

func (e *examination) program() {
	e.report.section("program")
	e.report.add(OK, "", "xtts-host %s, %s %s/%s", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (e *examination) driver(failed error) {
	r := e.report
	r.section("driver")
	r.Driver = e.machine.Driver
	seen := nvidiaCards(os.DirFS("/"))
	switch d := e.machine.Driver; {
	case failed != nil && e.OnCPU:
		r.add(Note, hint.Of(failed), "%v", failed)
	case failed != nil:
		r.add(Bad, hint.Of(failed), "%v", failed)
	case d.Absent != "" && seen > 0:
		r.add(Note, "install NVIDIA's driver, version 580 or later; in a container, start it with its GPUs (docker "+
			"run --gpus all)",
			"%s, but the PCI bus has %d of NVIDIA's cards", d.Absent, seen)
	case d.Absent != "":
		r.add(Note, "", "%s", d.Absent)
	default:
		r.add(OK, "", "NVIDIA driver %s, for CUDA up to %s", d.Version, d.CUDA)
		if d.Fault != "" {
			r.add(Note, gpu.FaultHint, "%s", d.Fault)
		}
	}
}

// cudaLibraries are the libraries of the driver, and those that ONNX Runtime's CUDA provider loads.
var cudaLibraries = append([]string{"libcuda.so.1"}, ort.CUDALibraries()...)

// cudaProvider is in the folder of the ONNX Runtime library, in its build for CUDA.
const cudaProvider = "libonnxruntime_providers_cuda.so"

func (e *examination) libraries(ctx context.Context) {
	r := e.report
	r.section("libraries")
	onGPU := e.gpus
	ours, err := e.Command.Runtime(ctx, e.Library, onGPU)
	if err != nil {
		r.add(Bad, hint.Of(err), "%v", err)
	} else {
		r.add(OK, "", "ONNX Runtime %s: %s", ours.Version, ours.Path)
		if filepath.IsAbs(ours.Path) {
			e.provider(filepath.Join(filepath.Dir(ours.Path), cudaProvider))
		}
	}
	e.cuda(ctx, ours.Path, onGPU)
	if onGPU {
		e.compiler(ctx, ours.Path)
	}
	if onGPU && len(e.machine.Cards) > 1 {
		e.nccl(ctx, ours.Path)
	}
}

// cuda examines the libraries of CUDA, which are next to ONNX Runtime's or where the loader finds them.
func (e *examination) cuda(ctx context.Context, runtime string, onGPU bool) {
	r := e.report
	sibling := func(name string) string { return filepath.Join(filepath.Dir(runtime), name) }
	var elsewhere, missing []string
	for _, name := range cudaLibraries {
		if path := sibling(name); onGPU && filepath.IsAbs(path) && exists(path) {
			r.add(OK, "", "%s: %s", name, path) // loaded with ONNX Runtime, before the loader searches elsewhere
		} else {
			elsewhere = append(elsewhere, name)
		}
	}
	if elsewhere == nil {
		return
	}
	for i, found := range e.Command.Libraries(ctx, elsewhere...) {
		switch {
		case found.Problem == "":
			r.add(OK, "", "%s: %s", elsewhere[i], found.Path)
		case e.gpus:
			r.add(Bad, "install CUDA 13 and cuDNN 9, or name their folders in LD_LIBRARY_PATH", "%s", found.Problem)
		default:
			missing = append(missing, elsewhere[i])
		}
	}
	if missing != nil {
		r.add(Note, "", "not found, and needed on a GPU only: %s", strings.Join(missing, ", "))
	}
}

// compiler examines NVRTC. Without it, training is slower but works.
func (e *examination) compiler(ctx context.Context, runtime string) {
	found, err := e.Command.Compiler(ctx, runtime)
	if err != nil {
		e.report.add(Note, hint.Of(err), "no CUDA compiler: training graphs run as exported, without fused kernels: %v",
			err)
		return
	}
	e.report.add(OK, "", "NVRTC %s: %s", found.Version, found.Path)
}

// nccl examines NCCL on a machine with several GPUs.
func (e *examination) nccl(ctx context.Context, runtime string) {
	found, err := e.Command.NCCL(ctx, runtime)
	if err != nil {
		e.report.add(Note, hint.Of(err), "no NCCL, which is needed only to train one model on several GPUs: %v", err)
		return
	}
	e.report.add(OK, "", "NCCL %s: %s", found.Version, found.Path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (e *examination) provider(path string) {
	if _, err := os.Stat(path); err == nil {
		e.report.add(OK, "", "its CUDA provider: %s", path)
	} else if e.gpus {
		e.report.add(Bad, "name the library of onnxruntime-gpu with --ort-lib", "it has no CUDA provider: %v", err)
	}
}

func (e *examination) cards() {
	r := e.report
	r.section("GPUs")
	for _, c := range e.machine.Cards {
		data, model := place.OptimalLimits(c.Memory, c.Memory)
		r.GPUs = append(r.GPUs, GPU{c, data, model})
		r.add(OK, "", "%s at %s%s", c.Device, c.PCI, capability(c.Capability))
		r.add(OK, "",
			"GPU %d: %d MB used, %d MB free of %d MB%s; recommended limits: %d MB for data, %d MB for the model",
			c.Index, c.Used/gpu.MB, c.Free/gpu.MB, c.Total/gpu.MB, load(c), data/gpu.MB, model/gpu.MB)
	}
	for _, l := range e.machine.Links {
		r.Links = append(r.Links, l)
		state := OK
		if !l.Peer {
			state = Note
		}
		r.add(state, "", "GPU %d and GPU %d are connected %s", l.A, l.B, l.Link)
	}
	if len(e.machine.Cards) == 0 {
		r.add(Note, "", "none")
	}
}

// capability formats the compute capability of a GPU, if it is known.
func capability(c int) string {
	if c == 0 {
		return ""
	}
	return fmt.Sprintf(", compute capability %d.%d", c/10, c%10)
}

// roles adds the verdict on the requested placement.
func (e *examination) roles(driver error) {
	r, p := e.report, e.placement
	r.section("placement")
	switch {
	case driver != nil && !e.OnCPU:
		r.add(Note, "", "unknown: the driver does not respond")
	case e.refusal != nil:
		r.add(Bad, hint.Of(e.refusal), "%v", e.refusal)
	default:
		r.Placement = &Placement{
			RolePlacement{p.Data.GPU.UUID, p.Data.Limit}, RolePlacement{p.Model.GPU.UUID, p.Model.Limit}, p.Reason,
		}
		r.add(OK, "", "%s", p)
	}
}
