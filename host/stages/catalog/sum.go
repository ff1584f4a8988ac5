package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// maxListed bounds the size of a file in plugin.sum, because every start of the host reads it completely.
const maxListed = 2 << 30

// verify checks every listed file, and that the required files are listed. It returns the sums by file.
func verify(root *os.Root, sums []byte, files []string) (map[string]string, error) {
	lines, err := archive.ParseSums(sums)
	if err != nil {
		return nil, err
	}
	listed := map[string]string{}
	for _, l := range lines {
		got, err := hashFile(root, l.Name)
		if err != nil {
			return nil, err
		}
		if got != l.Sum {
			return nil, fmt.Errorf("%s has sha256 %s, but %s has %s", l.Name, got, manifest.SumFile, l.Sum)
		}
		listed[l.Name] = l.Sum
	}
	for _, name := range files {
		if listed[name] == "" {
			return nil, fmt.Errorf("%s does not list %s", manifest.SumFile, name)
		}
	}
	return listed, nil
}

// Contents returns the hex SHA-256 of the plugin's files: those that plugin.sum lists, or all of the folder. It reads
// them once.
func (e *Entry) Contents() (string, error) {
	if e.contents != "" {
		return e.contents, nil
	}
	root, err := os.OpenRoot(e.Dir)
	if err != nil {
		return "", fmt.Errorf("plugin %s: %w", e.Name(), err)
	}
	defer root.Close()
	files := e.files
	if e.State == Unverified {
		if files, err = allFiles(root); err != nil {
			return "", fmt.Errorf("plugin %s: %w", e.Name(), err)
		}
		e.sums = map[string]string{}
	}
	h := sha256.New()
	for _, name := range files {
		sum, err := hashFile(root, name)
		if err != nil {
			return "", fmt.Errorf("plugin %s: %w", e.Name(), err)
		}
		if e.State == Unverified {
			e.sums[name] = sum
		}
		fmt.Fprintf(h, "%s  %s\n", sum, name)
	}
	e.contents = hex.EncodeToString(h.Sum(nil))
	return e.contents, nil
}

// Listed returns the files that plugin.sum lists, sorted; nil unless the plugin is Verified.
func (e *Entry) Listed() []string {
	if e.State != Verified {
		return nil
	}
	return e.files
}

// Identity is the hex SHA-256 of what the plugin computes with. If plugin.sum lists plugin.sources, it is the sum of
// that file; if it lists nothing but plugin.json and one program, that of the program. Otherwise it is that of all
// files that plugin.sum lists, or without it of all of the folder: a script computes with its modules, and others with
// data.
func (e *Entry) Identity() (string, error) {
	switch {
	case e.sources != "":
		return e.sources, nil
	case e.Sum != "" && len(e.Manifest.Argv) == 0 && len(e.files) == 2:
		return e.Sum, nil
	}
	return e.Contents()
}

// allFiles returns the files of a folder and its folders, but for those that differ between machines: folders whose
// name begins with a dot, such as an environment of Python, and what Python and npm make.
func allFiles(root *os.Root) (files []string, err error) {
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && archive.Made(entry.Name()):
			return fs.SkipDir
		case entry.Type().IsRegular():
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

func hashFile(root *os.Root, name string) (string, error) {
	f, err := files.OpenIn(root, name)
	if err != nil {
		return "", fmt.Errorf("%s: %s", name, linkReason(root, name, err))
	}
	defer f.Close()
	if size := f.Size(); size > maxListed {
		return "", fmt.Errorf("%s has %d bytes, more than the %d that are checked", name, size, maxListed)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %s", name, cause(err))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
