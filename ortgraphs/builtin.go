package ortgraphs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

//go:embed builtin
var builtins embed.FS

// ErrUnknownBuiltin means that no embedded bundle has the given name.
var ErrUnknownBuiltin = errors.New("unknown builtin bundle")

// Builtins returns the names of the embedded bundles, sorted.
func Builtins() []string {
	entries, err := builtins.ReadDir("builtin")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// Builtin loads an embedded bundle from the cache. If it is missing or changed there, Builtin unpacks it first, because
// plugins and ONNX Runtime need files. cacheDir is the program's cache folder; empty means xtts-host in the user's
// cache folder. Any number of processes may call it at the same time.
func Builtin(name, cacheDir string) (*Bundle, error) {
	if !slices.Contains(Builtins(), name) {
		return nil, hint.Errorf("there is "+builtinPrefix+strings.Join(Builtins(), " and "+builtinPrefix), "%w %q",
			ErrUnknownBuiltin, name)
	}
	if cacheDir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
		cacheDir = filepath.Join(user, "xtts-host")
	}
	bundle, err := fs.Sub(builtins, path.Join("builtin", name))
	if err != nil {
		return nil, fmt.Errorf("builtin bundle %s: %w", name, err)
	}
	dir, err := unpacked(bundle, files.In(cacheDir, "bundles"), name)
	if err != nil {
		return nil, fmt.Errorf("unpack builtin bundle %s: %w", name, err)
	}
	return Load(dir)
}

// Manifest reads the manifest of a bundle, which spec names as for Open, and nothing else of it.
func Manifest(spec string) (*manifest.Bundle, error) {
	if name, ok := strings.CutPrefix(spec, builtinPrefix); ok {
		data, err := fs.ReadFile(builtins, path.Join("builtin", name, ManifestFile))
		if err != nil {
			return nil, fmt.Errorf("%w %q", ErrUnknownBuiltin, name)
		}
		return manifest.ParseBundle(ManifestFile, data)
	}
	file := filepath.Join(spec, ManifestFile)
	data, err := files.Read(file, maxManifest)
	if err != nil {
		return nil, notABundle(err)
	}
	return manifest.ParseBundle(file, data)
}

// unpacked creates a folder below parent with the files of a bundle and returns its path. The path contains the
// bundle's hash, so versions of one bundle exist side by side.
func unpacked(bundle fs.FS, parent files.Path, name string) (string, error) {
	manifest, err := fs.ReadFile(bundle, ManifestFile) // contains the hashes of all other files
	if err != nil {
		return "", err
	}
	dir := parent.Join(fmt.Sprintf("%s-%.8x", name, sha256.Sum256(manifest)))
	return dir.String(), files.Unpack(dir, bundle, func(dir string) bool { return same(bundle, dir) })
}

// same reports whether a folder contains exactly the files of a bundle.
func same(bundle fs.FS, dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	want, err := fs.ReadDir(bundle, ".")
	if err != nil {
		return false
	}
	got, err := fs.ReadDir(root.FS(), ".")
	if err != nil || len(got) != len(want) {
		return false
	}
	for _, e := range want {
		a, err := fs.ReadFile(bundle, e.Name())
		if err != nil {
			return false
		}
		info, err := root.Lstat(e.Name())
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
		b, err := root.ReadFile(e.Name())
		if err != nil || !bytes.Equal(a, b) {
			return false
		}
	}
	return true
}
