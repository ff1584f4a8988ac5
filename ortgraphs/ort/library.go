package ort

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

const (
	// LibraryVersion is the version of ONNX Runtime that this package is tested with.
	LibraryVersion = "1.29.0"

	libraryName = "libonnxruntime.so." + LibraryVersion

	fetchScript = "scripts/fetch-ort.sh"

	// CachedLibrary is where scripts/fetch-ort.sh puts the library, relative to the repository's root.
	CachedLibrary = ".cache/ort/" + LibraryVersion + "/" + libraryName

	// GPUFolder is where xtts-host fetch cuda puts the library with CUDA and its providers, in the folder xtts-host
	// of the user's cache; in .cache of a checkout, make run puts them.
	GPUFolder = "ort-gpu/" + LibraryVersion

	// loaderDefault has no folder, so the dynamic loader uses its own search path.
	loaderDefault = "libonnxruntime.so.1"

	// LibraryEnv is the environment variable with the path of the library. [Options] take precedence.
	LibraryEnv = "XTTS_HOST_ORT_LIB"
)

// LibraryError says why no ONNX Runtime library could be loaded.
type LibraryError struct {
	// Tried lists the files that were tried, in order.
	Tried []string
	// Err is the error for the last of them.
	Err error
	// CUDA means that the library with CUDA was requested.
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
		return hint.Command("fetch cuda") + " fetches the library with CUDA; " +
			"to use another one, set --ort-lib or " + LibraryEnv
	}
	dir, err := executableDir()
	return e.hint(err == nil && filepath.Base(dir) == "bin" && !exists(filepath.Join(dir, "..", fetchScript)))
}

// hint says it for a program that is installed, or one of a checkout. A program of tests is in no folder bin.
func (e *LibraryError) hint(installed bool) string {
	switch {
	case e.Err != nil && cxxMissing.MatchString(e.Err.Error()):
		return "install the C++ library of GCC, which ONNX Runtime needs: the package libstdc++6 of Debian and " +
			"Ubuntu, libstdc++ of others"
	case installed:
		return "a release has the library in lib beside the program's folder bin: install both, or set --ort-lib or " +
			LibraryEnv
	}
	return fetchScript + " fetches the library (make run does it too); to use another one, set --ort-lib or " +
		LibraryEnv
}

// cxxMissing is what the dynamic loader says on a machine without the C++ library. Its version may also be too old.
var cxxMissing = regexp.MustCompile(`^(libstdc\+\+|libgcc_s)\.so\.\d+: |/libstdc\+\+\.so\.6: version `)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// candidates lists the possible paths of the library, best first. A named library (option, then environment) is the
// only candidate: if it is wrong, no other library may silently replace it.
//
// With cuda, the cached library is the one with CUDA. The CPU library would report only when a session is opened that
// it has no CUDA.
func candidates(option, env, executableDir, cacheDir string, cuda bool) []string {
	for _, named := range []string{option, env} {
		if named != "" {
			return []string{asFile(named)}
		}
	}
	if cuda {
		return []string{
			filepath.Join(executableDir, "..", ".cache", GPUFolder, libraryName), // bin/ of a checkout
			filepath.Join(cacheDir, "xtts-host", GPUFolder, libraryName),         // xtts-host fetch cuda
			loaderDefault,
		}
	}
	return []string{
		filepath.Join(executableDir, "lib", libraryName),       // unpacked release
		filepath.Join(executableDir, "..", "lib", libraryName), // installed as prefix/bin, prefix/lib
		filepath.Join(executableDir, "..", CachedLibrary),      // bin/ of a checkout
		loaderDefault,
	}
}

// asFile prevents the dynamic loader from searching its own folders for a name without a folder.
func asFile(path string) string {
	if strings.ContainsRune(path, filepath.Separator) {
		return path
	}
	return "." + string(filepath.Separator) + path
}

// load opens the first candidate that exists and returns its path. A candidate that exists but does not load ends the
// search.
func load(candidates []string, open func(path string) error) (string, error) {
	var err error
	for _, path := range candidates {
		if path != loaderDefault {
			if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				err = fs.ErrNotExist // the error's text repeats the path
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

// userCache is the folder of the user's caches, or "" without one.
func userCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return dir
}

func executableDir() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program's folder, for which /proc must be mounted: %w", err)
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", fmt.Errorf("find the program's folder: %w", err)
	}
	return filepath.Dir(exe), nil
}
