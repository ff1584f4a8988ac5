package fetch

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// wheel is a pinned wheel and the libraries that are taken from it.
type wheel struct {
	name, version, sha256 string
	loaded                string // the wheel is not needed where the dynamic loader finds this; "" if it always is
	files                 []string
}

// nvrtc is CUDA's compiler, which opens its builtins by their full version.
var nvrtc = wheel{
	"nvidia-cuda-nvrtc", "13.0.88", "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575",
	"libnvrtc.so.13",
	[]string{"libnvrtc-builtins.so.13.0", "libnvrtc.so.13"},
}

// nccl sums between GPUs.
var nccl = wheel{
	"nvidia-nccl-cu13", "2.28.9", "e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42",
	"libnccl.so.2",
	[]string{"libnccl.so.2"},
}

// wheels are all that training on GPUs needs.
var wheels = []wheel{
	{"onnxruntime-gpu", ort.LibraryVersion, "de3caf93887ba4ad51c7d3cab04c7b464f9dd93c51047be5bfb413fd4a191e6a", "",
		[]string{
			"libonnxruntime.so." + ort.LibraryVersion, "libonnxruntime_providers_shared.so",
			"libonnxruntime_providers_cuda.so",
		}},
	{
		"nvidia-cuda-runtime", "13.0.96", "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
		"libcudart.so.13",
		[]string{"libcudart.so.13"},
	},
	{"nvidia-cublas", "13.1.0.3", "ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171", "libcublas.so.13",
		[]string{"libcublasLt.so.13", "libcublas.so.13"}},
	{
		"nvidia-curand", "10.4.0.35", "1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc",
		"libcurand.so.10",
		[]string{"libcurand.so.10"},
	},
	{"nvidia-cufft", "12.0.0.61", "6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3", "libcufft.so.12",
		[]string{"libcufft.so.12"}},
	{
		"nvidia-cudnn-cu13", "9.19.0.56", "d20e1734305e9d68889a96e3f35094d733ff1f83932ebe462753973e53a572bf",
		"libcudnn.so.9",
		[]string{"libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9", "libcudnn_adv.so.9",
			"libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9", "libcudnn_engines_runtime_compiled.so.9"},
	},
	nvrtc,
	nccl,
}

// missing returns the files of the wheel that a folder lacks.
func (w wheel) missing(folder files.Path) (names []string, err error) {
	for _, name := range w.files {
		switch _, err := folder.Join(name).Lstat(); {
		case errors.Is(err, fs.ErrNotExist):
			names = append(names, name)
		case err != nil:
			return nil, err
		}
	}
	return names, nil
}

// fetch downloads the wheel, and puts the named libraries into the folder, each in one step.
func (w wheel) fetch(ctx context.Context, folder files.Path, names []string) (err error) {
	work, lock, err := folder.Temp(".fetch-", "")
	if err != nil {
		return err
	}
	defer lock.Close()
	defer func() { err = errors.Join(err, work.RemoveAll()) }()
	file, err := w.download(ctx, work)
	if err != nil {
		return err
	}
	if err := unpack(file, folder, names); err != nil {
		return fmt.Errorf("%s %s: %w", w.name, w.version, err)
	}
	return nil
}

// unpack writes the named libraries of a wheel into a folder.
func unpack(file string, folder files.Path, names []string) error {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer archive.Close()
	members := map[string]*zip.File{}
	for _, f := range archive.File {
		members[path.Base(f.Name)] = f
	}
	for _, name := range names {
		member, ok := members[name]
		if !ok {
			return fmt.Errorf("the wheel has no %s", name)
		}
		if err := extract(member, folder.Join(name)); err != nil {
			return err
		}
	}
	return nil
}

func extract(member *zip.File, to files.Path) error {
	from, err := member.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	draft, err := to.Create()
	if err != nil {
		return err
	}
	defer draft.Discard()
	if _, err := io.Copy(draft, from); err != nil {
		return err
	}
	return draft.Commit()
}
