package ort

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	libraryName = "libonnxruntime.so.1.29.0"

	// CachedLibrary is where scripts/fetch-ort.sh puts the library, seen from the repository's root.
	CachedLibrary = ".cache/ort/1.29.0/" + libraryName

	// CachedGPULibrary is where scripts/fetch-ort.sh --gpu puts the one with CUDA, and its providers beside it.
	CachedGPULibrary = ".cache/ort-gpu/1.29.0/" + libraryName

	// loaderDefault has no folder, so the dynamic loader searches its own.
	loaderDefault = "libonnxruntime.so.1"

	// LibraryEnv names the library in the environment; [Options] go before it.
	LibraryEnv = "XTTS_HOST_ORT_LIB"
)

// LibraryError says why no ONNX Runtime library could be loaded.
type LibraryError struct {
	// Tried lists the files that were looked for, in order.
	Tried []string
	// Err is the reason for the last of them.
	Err error
	// CUDA says that the library with CUDA was wanted.
	CUDA bool
}

func (e *LibraryError) Error() string {
	if len(e.Tried) == 1 {
		return fmt.Sprintf("ONNX Runtime library %s: %v", e.Tried[0], e.Err)
	}
	return fmt.Sprintf("ONNX Runtime library not found; tried %s: %v", strings.Join(e.Tried, ", "), e.Err)
}

func (e *LibraryError) Unwrap() error { return e.Err }

// Hint says how to get the library.
func (e *LibraryError) Hint() string {
	if e.CUDA {
		return "scripts/fetch-ort.sh --gpu fetches the library with CUDA; another one is named by --ort-lib or " + LibraryEnv
	}
	return "scripts/fetch-ort.sh fetches the library (make run does it too); another one is named by --ort-lib or " + LibraryEnv
}

// candidates lists the places where the library may be, best first. A named library (option, then
// environment) is the only candidate: when it is wrong, another one must not take its place unseen.
//
// With cuda the cached one is that with CUDA; the library of the CPU would say only then that it has none, when a session is opened.
func candidates(option, env, executableDir string, cuda bool) []string {
	cached := CachedLibrary
	if cuda {
		cached = CachedGPULibrary
	}
	for _, named := range []string{option, env} {
		if named != "" {
			return []string{asFile(named)}
		}
	}
	return []string{
		filepath.Join(executableDir, "lib", libraryName),       // unpacked release
		filepath.Join(executableDir, "..", "lib", libraryName), // installed as prefix/bin, prefix/lib
		filepath.Join(executableDir, "..", cached),             // bin/ of a checkout
		loaderDefault,
	}
}

// asFile keeps the dynamic loader from searching its own folders for a name without one.
func asFile(path string) string {
	if strings.ContainsRune(path, filepath.Separator) {
		return path
	}
	return "." + string(filepath.Separator) + path
}

// load opens the first candidate that exists and returns its path. One that exists and does not load ends
// the search.
func load(candidates []string, open func(path string) error) (string, error) {
	var err error
	for _, path := range candidates {
		if path != loaderDefault {
			if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				err = fs.ErrNotExist // the error's own text repeats the path
				continue
			}
			if err != nil {
				return "", &LibraryError{Tried: []string{path}, Err: err}
			}
		}
		if err = open(path); err == nil {
			return path, nil
		}
		if path != loaderDefault {
			return "", &LibraryError{Tried: []string{path}, Err: err}
		}
	}
	return "", &LibraryError{Tried: candidates, Err: err}
}

func executableDir() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program's folder: %w", err)
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", fmt.Errorf("find the program's folder: %w", err)
	}
	return filepath.Dir(exe), nil
}
