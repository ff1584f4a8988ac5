package nvrtc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"sync"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// cacheLimit is the size of the cache folder, in bytes. A model's kernels for one bucket take about 1 MB.
const cacheLimit = 512 << 20

// suffix is that of the cache's files. Each has a checksum, and then the image.
const suffix = ".image"

// ofCache matches the names of the cache's files: a key and the suffix.
var ofCache = regexp.MustCompile(`^[0-9a-f]{64}\.image$`)

// cache is a folder with compiled programs. Without a folder it keeps nothing. The folder itself is no link: it is in a
// cache folder, which may come from someone else.
type cache struct {
	folder string

	mu    sync.Mutex
	added bool
	err   error // the first one of add
}

// key is the name of a program in the cache: the hash of everything that its image depends on.
func key(version string, options []string, source string) string {
	h := sha256.New()
	for _, part := range append([]string{version, source}, options...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// load returns a program, or nil if the cache does not have it or its file is damaged.
func (c *cache) load(key string) []byte {
	if c.folder == "" {
		return nil
	}
	file := files.At(c.folder).Join(key + suffix)
	content, err := file.Read(cacheLimit)
	if err != nil || len(content) <= sha256.Size {
		return nil
	}
	image := content[sha256.Size:]
	if sum := sha256.Sum256(image); !bytes.Equal(sum[:], content[:sha256.Size]) {
		return nil
	}
	_ = file.Touch() // in a folder that cannot be written, nothing is removed either
	return image
}

// add writes a program. After a failure it does nothing: a full disk is full for the next program too.
func (c *cache) add(key string, image []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.folder == "" || c.err != nil {
		return
	}
	sum := sha256.Sum256(image)
	c.err = files.At(c.folder).Join(key+suffix).Write(sum[:], image)
	c.added = true
}

// close removes what was not used for the longest time if add has made the cache too large, and returns why the cache
// is not as it should be.
func (c *cache) close() error {
	if c.added && c.err == nil {
		c.err = shrink(c.folder, cacheLimit)
	}
	if c.err != nil {
		return fmt.Errorf("cache of compiled kernels: %w", c.err)
	}
	return nil
}

// shrink removes the oldest images of a folder until the others take at most limit bytes.
func shrink(folder string, limit int64) error {
	entries, err := files.At(folder).ReadDir()
	if err != nil {
		return err
	}
	var images []fs.FileInfo
	var size int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !ofCache.MatchString(e.Name()) {
			continue // another process has removed it, or it is not ours
		}
		images = append(images, info)
		size += info.Size()
	}
	slices.SortFunc(images, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range images {
		if size <= limit {
			break
		}
		if err := files.At(folder).Join(info.Name()).Remove(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		size -= info.Size()
	}
	return nil
}
