// Package fetch downloads the libraries that training on a GPU needs: ONNX Runtime with CUDA, and what the dynamic
// loader does not find of CUDA's libraries.
//
// They come from wheels of the Python package index: pip downloads a wheel and checks its pinned hash. The driver is
// not included.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/library"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Request is what to fetch.
type Request struct {
	// Folder receives the libraries. Files that are there are kept.
	Folder string
	// What is one of All, NVRTC and NCCL.
	What string
}

// What to fetch.
const (
	// All is what training needs on this machine, but what the dynamic loader finds. NCCL is part of it if the machine
	// has several GPUs.
	All = "cuda"
	// NVRTC is CUDA's compiler, even if the loader finds one.
	NVRTC = "nvrtc"
	// NCCL sums between GPUs, even if the loader finds one.
	NCCL = "nccl"
)

// only are the wheels that can be fetched alone.
var only = map[string]*wheel{NVRTC: &nvrtc, NCCL: &nccl}

// Run fetches the libraries and writes a line for each wheel.
func Run(ctx context.Context, out io.Writer, r Request) error {
	cards, err := gpu.Detect()
	if err != nil {
		return err
	}
	return r.run(ctx, out, len(cards))
}

// run is Run on a machine with so many GPUs.
func (r Request) run(ctx context.Context, out io.Writer, gpus int) error {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return exit.Usage(fmt.Errorf("no pinned libraries for %s/%s, only for linux/amd64", runtime.GOOS,
			runtime.GOARCH), "build ONNX Runtime with CUDA, and name its library with --ort-lib")
	}
	if err := needPip(ctx); err != nil {
		return err
	}
	folder := files.At(r.Folder)
	if err := folder.MkdirAll(); err != nil {
		return err
	}
	for _, w := range wheels {
		alone := only[r.What]
		if alone != nil && w.name != alone.name {
			continue
		}
		missing, err := w.missing(folder)
		if err != nil {
			return err
		}
		switch {
		case missing == nil:
			fmt.Fprintf(out, "%s %s: in %s\n", w.name, w.version, r.Folder)
		case alone == nil && w.name == nccl.name && gpus < 2:
			fmt.Fprintf(out, "%s %s: not needed, it is for several GPUs; %s fetches it\n", w.name, w.version,
				hint.Command("fetch nccl"))
		case alone == nil && w.loaded != "" && onMachine(w.loaded):
			fmt.Fprintf(out, "%s %s: not needed, the dynamic loader finds %s\n", w.name, w.version, w.loaded)
		default:
			fmt.Fprintf(out, "%s %s: fetching\n", w.name, w.version)
			if err := w.fetch(ctx, folder, missing); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(out, "the libraries are in %s\n", r.Folder)
	return nil
}

// onMachine reports whether the dynamic loader finds a library.
func onMachine(name string) bool {
	_, err := library.Find(name)
	return err == nil
}

// needPip refuses a machine without pip.
func needPip(ctx context.Context) error {
	const advice = "install Python 3 with pip: on Debian and Ubuntu, apt-get install python3-pip"
	if _, err := exec.LookPath("python3"); err != nil {
		return exit.Usage(errors.New("python3 is missing: it fetches the libraries"), advice)
	}
	if err := exec.CommandContext(ctx, "python3", "-m", "pip", "--version").Run(); err != nil {
		return exit.Usage(errors.New("pip is missing: it fetches the libraries"), advice)
	}
	return nil
}

// download has pip fetch a wheel into a folder, and check its hash. It writes nothing elsewhere.
func (w wheel) download(ctx context.Context, folder files.Path) (string, error) {
	list := folder.Join("requirements.txt")
	line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", w.name, w.version, w.sha256)
	if err := list.Write([]byte(line)); err != nil {
		return "", err
	}
	arguments := []string{
		"-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:",
		"--implementation", "cp", "--python-version", "3.11", "--dest", folder.String(), "--requirement", list.String(),
	}
	for _, platform := range []string{
		"manylinux_2_28", "manylinux_2_27", "manylinux_2_18", "manylinux2014", "manylinux2010",
	} {
		arguments = append(arguments, "--platform", platform+"_x86_64")
	}
	pip := exec.CommandContext(ctx, "python3", arguments...)
	// A folder for rustup, because pip runs "rustc --version" for its user agent.
	pip.Env = append(os.Environ(), "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_CACHE_DIR=1",
		"RUSTUP_HOME="+folder.Join("rustup").String(), "TMPDIR="+folder.String())
	pip.Stderr = os.Stderr
	if err := pip.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", hint.Errorf(
			"its message is above; a disk that is full, or no way to the package index, are the usual reasons",
			"pip could not fetch %s %s: %w", w.name, w.version, err)
	}
	found, err := filepath.Glob(folder.Join("*.whl").String())
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("pip left %d wheels of %s", len(found), w.name)
	}
	return found[0], nil
}
