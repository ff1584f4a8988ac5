package replay

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The files of the folder, in addition to those of the batches.
const (
	stepFile      = "step.json"
	weightsFile   = "weights.safetensors"
	gradientsFile = "gradients.safetensors"
	afterFile     = "weights-after.safetensors"
)

// folder is the folder that is written.
type folder struct{ path string }

// newFolder checks the folder, which must not be there, nor be in that of the run.
func newFolder(run string, o Options) (*folder, error) {
	f := &folder{path: o.Out}
	if f.path == "" {
		f.path = folderName(run, o.Step)
	}
	switch err := disk.CheckNew(f.path); {
	case errors.Is(err, disk.ErrThere):
		return nil, hint.Errorf("name a new folder with --out, or remove that one", "--out %s: %w", f.path, err)
	case inside(f.path, run):
		return nil, hint.Errorf("name a folder outside of the run with --out",
			"--out %s: the folder of the run that is replayed is only read", f.path)
	case err != nil:
		return nil, hint.Errorf("name another folder with --out", "--out %s: %w", f.path, err)
	}
	return f, nil
}

// inside reports whether a path is in a folder, also through links of folders that exist.
func inside(path, folder string) bool {
	folder = real(folder)
	for at := real(path); ; at = filepath.Dir(at) {
		if at == folder {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// real resolves the links of the part of a path that exists.
func real(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	rest := ""
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, rest)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
	return path
}

func (f *folder) make() error {
	if err := files.In(filepath.Dir(f.path)).MkdirAll(); err != nil {
		return fmt.Errorf("--out %s: %w", f.path, err)
	}
	return files.At(f.path).Mkdir()
}

// remove removes what make has made.
func (f *folder) remove() error { return files.At(f.path).RemoveAll() }

// tensors writes a file of tensors.
func (f *folder) tensors(name string, all []safetensors.Tensor, about map[string]string) error {
	path := filepath.Join(f.path, name)
	size := int64(0)
	for _, t := range all {
		size += int64(len(t.Data))
	}
	out, err := files.At(path).Fresh()
	if err == nil {
		err = errors.Join(safetensors.Write(out, all, about), out.Close())
	}
	return disk.Explain(err, path, size)
}

// json writes a file of one object.
func (f *folder) json(name string, v any) error {
	var text bytes.Buffer
	if err := report.JSON(&text, v); err != nil {
		return err
	}
	return disk.Replace(filepath.Join(f.path, name), text.Bytes())
}

// stored are tensors of training as a file has them.
func stored(all []checkpoint.Tensor) []safetensors.Tensor {
	out := make([]safetensors.Tensor, len(all))
	for i, t := range all {
		out[i] = safetensors.Tensor{Name: t.Name, DType: safetensors.TypeOf(t.DType), Shape: t.Shape, Data: t.Data}
	}
	return out
}

// described are tensors as step.json lists them.
func described(all []safetensors.Tensor) (out []tensor) {
	for _, t := range all {
		out = append(out, tensor{Name: t.Name, DType: strings.ToLower(fmt.Sprint(t.DType)), Shape: t.Shape})
	}
	return out
}

// scalarTensor is a graph's input of one number.
func scalarTensor(name string, of manifest.DType, data []byte) safetensors.Tensor {
	return safetensors.Tensor{Name: name, DType: safetensors.TypeOf(of), Shape: []int{}, Data: data}
}
