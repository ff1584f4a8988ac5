package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/release"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Content is what a whole archive has.
type Content struct {
	Index    Index
	Manifest *manifest.Plugin
	Sum      string // hex SHA-256 of the archive
	Size     int64  // of the archive in bytes
	// Python is what the lock of an environment says that it holds for, such as "Python 3.12 on linux-x86_64"; empty if
	// it does not say so.
	Python string
}

// CanRun returns why this machine or this host cannot run the plugin.
func (c *Content) CanRun() error {
	if err := c.Index.runsOn(runtime.GOOS + "_" + runtime.GOARCH); err != nil {
		return err
	}
	return release.AtLeast(c.Index.MinHost)
}

// Read reads an archive of size bytes to its end and checks all of it. It calls each with every file, unless each is
// nil; what each has got counts only if Read returns no error.
func Read(in io.Reader, size int64, each func(f File, content io.Reader) error) (*Content, error) {
	if size > MaxBytes {
		return nil, refuse("an archive of %s, more than the %s that one may have", units.Size(size),
			units.Size(MaxBytes))
	}
	sum := sha256.New()
	raw := &counter{from: io.TeeReader(in, sum)}
	r := &reader{raw: bufio.NewReader(raw), size: size, each: each, kept: map[string][]byte{}}
	if err := r.read(); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = hint.Errorf("get it again: copy or download it whole", "%w", ErrCut)
		}
		return nil, err
	}
	if raw.n != size {
		return nil, refuse("it has %d bytes, and had %d before", raw.n, size)
	}
	c := &Content{Index: r.index, Manifest: r.manifest, Sum: hex.EncodeToString(sum.Sum(nil)), Size: size}
	if said := holdsFor.FindSubmatch(r.kept[lockFile]); said != nil {
		c.Python = string(said[1])
	}
	return c, nil
}

// holdsFor is the line of a lock of plugins new that says where it holds.
var holdsFor = regexp.MustCompile(`(?m)^# It holds for (Python [0-9.]+ on [a-z0-9_-]+)`)

// reader reads one archive.
type reader struct {
	raw      *bufio.Reader // the archive
	size     int64         // of it
	each     func(File, io.Reader) error
	tar      *tar.Reader
	index    Index
	manifest *manifest.Plugin
	kept     map[string][]byte // the files that are read here: plugin.json, plugin.sum, requirements.lock
}

func (r *reader) read() error {
	if magic, err := r.raw.Peek(2); err == nil && string(magic) != "\x1f\x8b" {
		return refuse("not an archive of a plugin: %s writes one", hint.Command("plugins pack"))
	}
	unzipped, err := gzip.NewReader(r.raw)
	if err != nil {
		return malformed(err)
	}
	unzipped.Multistream(false)
	limited := &counter{from: unzipped, limit: min(maxUnpacked, unpackedLimit(r.size)) + maxIndex}
	r.tar = tar.NewReader(limited)
	if err := r.readIndex(); err != nil {
		return malformed(err)
	}
	for i := range r.index.Files {
		if err := r.readFile(r.index.Files[i]); err != nil {
			return malformed(err)
		}
	}
	switch h, err := r.tar.Next(); {
	case err == nil:
		return r.unexpected(h)
	case err != io.EOF:
		return malformed(err)
	}
	switch n, err := io.CopyN(io.Discard, limited, 1); {
	case n > 0:
		return refuse("further bytes follow after its last file")
	case err != io.EOF:
		return malformed(err)
	}
	if _, err := r.raw.ReadByte(); err == nil {
		return refuse("further bytes follow after its end")
	}
	return r.checkPlugin()
}

// malformed puts errors of the libraries in words.
func malformed(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) ||
		isFlate(err) {
		return refuse("it is damaged: %w", err)
	}
	return err
}

// next reads the header of the next file, which must be plain.
func (r *reader) next() (*tar.Header, error) {
	h, err := r.tar.Next()
	if err != nil {
		return nil, err
	}
	return h, plainFile(h)
}

// plainFile refuses what is not a file with the mode of one.
func plainFile(h *tar.Header) error {
	kind := ""
	switch h.Typeflag {
	case tar.TypeReg:
	case tar.TypeSymlink:
		kind = "a symbolic link"
	case tar.TypeLink:
		kind = "a hard link"
	case tar.TypeChar, tar.TypeBlock:
		kind = "a device"
	case tar.TypeFifo:
		kind = "a named pipe"
	case tar.TypeDir:
		kind = "a folder of its own"
	default:
		kind = fmt.Sprintf("of type %q", h.Typeflag)
	}
	if kind != "" {
		return refuse("%q is %s: only files may be in it", h.Name, kind)
	}
	if h.Mode != 0o644 && h.Mode != 0o755 {
		return refuse("%q has the mode %04o, and may only have 0644 or 0755", h.Name, h.Mode)
	}
	for key := range h.PAXRecords {
		if key != "path" {
			return refuse("%q has an attribute, %q: files may have none", h.Name, key)
		}
	}
	return nil
}

func (r *reader) readIndex() error {
	h, err := r.next()
	if err == io.EOF {
		return refuse("there is nothing in it")
	}
	if err != nil {
		return err
	}
	if h.Name != indexFile {
		return refuse("not an archive of a plugin: its first file is %q, not %s", h.Name, indexFile)
	}
	if h.Size > maxIndex {
		return refuse("%s has %s, more than %s", indexFile, units.Size(h.Size), units.Size(maxIndex))
	}
	data, err := io.ReadAll(r.tar)
	if err != nil {
		return err
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&r.index); err != nil {
		return refuse("%s: %s", indexFile, err)
	}
	if _, err := strict.Token(); err != io.EOF {
		return refuse("%s: further text after its end", indexFile)
	}
	return r.index.check(r.size)
}

// readFile reads the next file, which must be f.
func (r *reader) readFile(f File) error {
	h, err := r.next()
	if err == io.EOF {
		return refuse("%q is in %s, and not in the archive", f.Name, indexFile)
	}
	if err != nil {
		return err
	}
	if h.Name != filesBelow+f.Name {
		return r.unexpected(h)
	}
	if h.Size != f.Size {
		return refuse("%q has %d bytes, and %d in %s", f.Name, h.Size, f.Size, indexFile)
	}
	if executable := h.Mode == 0o755; executable != f.Executable {
		return refuse("%q has the mode %04o, which is not what %s says", f.Name, h.Mode, indexFile)
	}
	sum := sha256.New()
	content := io.TeeReader(r.tar, sum)
	if f.Name == manifest.PluginFile || f.Name == manifest.SumFile || f.Name == lockFile {
		if f.Size > maxIndex {
			return refuse("%q has %s, more than %s", f.Name, units.Size(f.Size), units.Size(maxIndex))
		}
		data, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		r.kept[f.Name], content = data, bytes.NewReader(data)
	}
	if r.each != nil {
		if err := r.each(f, content); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return refuse("%q has the SHA-256 %s, and %s in %s", f.Name, got, f.SHA256, indexFile)
	}
	return nil
}

// unexpected says what is wrong with an entry that is not the next file of the index.
func (r *reader) unexpected(h *tar.Header) error {
	if err := plainFile(h); err != nil {
		return err
	}
	name, below := strings.CutPrefix(h.Name, filesBelow)
	if !below {
		return refuse("%q is not below %s", h.Name, filesBelow)
	}
	if err := checkName(name); err != nil {
		return err
	}
	if _, ok := r.index.File(name); ok {
		return refuse("%q is in it twice, or out of order", name)
	}
	return refuse("%q is in it, and not in %s", name, indexFile)
}

// checkPlugin checks plugin.json, and what belongs to it.
func (r *reader) checkPlugin() (err error) {
	data, ok := r.kept[manifest.PluginFile]
	if !ok {
		return refuse("it has no %s", manifest.PluginFile)
	}
	if r.manifest, err = manifest.ParsePlugin(manifest.PluginFile, data); err != nil {
		return refuse("%w", err)
	}
	if err := r.index.matches(r.manifest); err != nil {
		return err
	}
	if err := complete(&r.index, r.manifest, r.kept[lockFile]); err != nil {
		return refuse("%w", err)
	}
	return allListed(&r.index, r.kept[manifest.SumFile])
}

// complete checks that the files have what the manifest and the environment need.
func complete(ix *Index, p *manifest.Plugin, lock []byte) error {
	if _, ok := ix.File(manifest.SumFile); !ok {
		return refuse("it has no %s", manifest.SumFile)
	}
	for _, platform := range ix.Platforms {
		program, ok := p.Executable[platform]
		if f, there := ix.File(program); ok && (!there || !f.Executable) {
			return hint.Errorf("build the plugin for all platforms of "+manifest.PluginFile+
				", or take the platform out of it", "%s: the program for %s, %s, is missing", manifest.PluginFile,
				platform, program)
		}
	}
	if ix.Environment == "" {
		return nil
	}
	if _, ok := ix.File(lockFile); !ok {
		return hint.Errorf("write it: make lock", "%s is there, and %s is not", requirementsFile, lockFile)
	}
	return checkLock(lock)
}

// checkLock checks that each package in the lock of an environment has a hash, so that no other can come in its place.
func checkLock(lock []byte) error {
	packages := 0
	joined := strings.ReplaceAll(string(lock), "\\\n", " ")
	for i, line := range strings.Split(joined, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "--") {
			continue
		}
		if packages++; !strings.Contains(line, " --hash=sha256:") {
			return hint.Errorf("write it again: make lock", "%s:%d: %s has no hash", lockFile, i+1, line)
		}
	}
	if packages == 0 {
		return hint.Errorf("write it again: make lock", "%s names no package", lockFile)
	}
	return nil
}
