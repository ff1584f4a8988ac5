package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// alongside are the files that belong into an archive, if they are there, besides those that plugin.sum lists.
var alongside = []string{"COPYING", "LICENCE", "LICENSE", "LICENSE.md", "LICENSE.txt", "NOTICE", "README.md"}

// Write writes the archive of a plugin's folder: plugin.sum, the files that it lists, and texts such as LICENSE.
// listed are the names in plugin.sum; whoever calls has compared the files with it.
func Write(out io.Writer, dir string, listed []string) (*Index, error) {
	root := files.In(dir)
	names := append(slices.Clone(listed), manifest.SumFile)
	for _, name := range alongside {
		if info, err := root.Join(name).Lstat(); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	list, err := describe(root, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	data, err := root.Join(manifest.PluginFile).Read(maxIndex)
	if err != nil {
		return nil, err
	}
	plugin, err := manifest.ParsePlugin(manifest.PluginFile, data)
	if err != nil {
		return nil, err
	}
	ix := newIndex(plugin, list)
	lock, err := root.Join(lockFile).Read(maxIndex)
	if _, needed := ix.File(lockFile); err != nil && needed {
		return nil, err
	}
	if err := complete(&ix, plugin, lock); err != nil {
		return nil, err
	}
	return &ix, write(out, root, &ix)
}

// describe reads the files once, for the index.
func describe(root files.Path, names []string) (list []File, err error) {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, hint.Errorf("give the file another name, or take it out of "+manifest.SumFile, "%w", err)
		}
		info, err := describeFile(root.Join(name))
		if errors.Is(err, files.ErrLink) {
			err = hint.Errorf("put the file itself in its place", "%s is a link: an archive has none", name)
		}
		if err != nil {
			return nil, err
		}
		info.Name = name
		list = append(list, info)
	}
	return list, nil
}

// describeFile returns what the index has of a file, without its name.
func describeFile(at files.Path) (f File, err error) {
	in, err := at.Open()
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	f.Size, err = io.Copy(sum, in)
	f.Executable, f.SHA256 = info.Mode()&0o100 != 0, hex.EncodeToString(sum.Sum(nil))
	return f, err
}

// write writes the index and the files. The result has to be as Read takes it.
func write(out io.Writer, root files.Path, ix *Index) error {
	text, err := json.MarshalIndent(ix, "", "  ")
	if err != nil {
		return err
	}
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(zipped)
	text = append(text, '\n')
	if err := add(t, indexFile, File{Size: int64(len(text))}, bytes.NewReader(text)); err != nil {
		return err
	}
	for _, f := range ix.Files {
		in, err := root.Join(f.Name).Open()
		if err != nil {
			return err
		}
		sum := sha256.New()
		err = add(t, filesBelow+f.Name, f, io.TeeReader(in, sum))
		in.Close()
		if err == nil && hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
			err = fmt.Errorf("%s has changed while it was packed", f.Name)
		}
		if err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return zipped.Close()
}

// add writes one file, without times and owners.
func add(t *tar.Writer, name string, f File, content io.Reader) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: f.Size, Mode: 0o644}
	if f.Executable {
		h.Mode = 0o755
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.Copy(t, content); err != nil {
		if strings.Contains(err.Error(), "too long") {
			err = fmt.Errorf("%s has changed while it was packed", f.Name)
		}
		return err
	}
	return nil
}
