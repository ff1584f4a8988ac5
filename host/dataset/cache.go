package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/shared/unpack"
)

// cacheMark starts a cache file. It changes with scannedRow, and when the set of readable files changes.
const cacheMark = "xtts-host index 4\n"

// cache stores the scan of one list in one file: the mark, the key of everything it depends on, the SHA-256 of the
// rest, and the rows in gob. The file name comes from folder, list, tokenizer and sample rate, so a changed data set
// replaces its file and two bundles do not evict each other.
type cache struct {
	file string // empty: no cache
}

func newCache(ix *Index, cfg Config) *cache {
	if cfg.CacheDir == "" {
		return &cache{}
	}
	b := appendField(nil, ix.Dir)
	b = appendField(b, ix.List)
	b = appendInt(b, int64(cfg.SampleRate))
	if cfg.Tokenizer != nil {
		b = appendField(b, cfg.Tokenizer.Hash())
	}
	sum := sha256.Sum256(b)
	return &cache{filepath.Join(cfg.CacheDir, "index-"+hex.EncodeToString(sum[:8])+".bin")}
}

// load returns nil if there is nothing for the key. A damaged file is an error without further consequences.
func (c *cache) load(key [sha256.Size]byte, rows int) ([]scannedRow, error) {
	if c.file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("index cache: %w", err)
	}
	damaged := fmt.Errorf("index cache %s is damaged", c.file)
	data, ok := bytes.CutPrefix(data, []byte(cacheMark))
	if !ok || len(data) < 2*sha256.Size {
		return nil, damaged
	}
	if !bytes.Equal(data[:sha256.Size], key[:]) {
		return nil, nil // for another state of the data set
	}
	want, data := data[sha256.Size:2*sha256.Size], data[2*sha256.Size:]
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], want) {
		return nil, damaged
	}
	var scanned []scannedRow
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&scanned); err != nil || len(scanned) != rows {
		return nil, damaged
	}
	return scanned, nil
}

// store writes a temporary file and renames it, so a reader never sees a partial file.
func (c *cache) store(key [sha256.Size]byte, scanned []scannedRow) error {
	if c.file == "" {
		return nil
	}
	var rows bytes.Buffer
	if err := gob.NewEncoder(&rows).Encode(scanned); err != nil {
		return fmt.Errorf("index cache: %w", err)
	}
	sum := sha256.Sum256(rows.Bytes())
	if err := writeFile(c.file, []byte(cacheMark), key[:], sum[:], rows.Bytes()); err != nil {
		return fmt.Errorf("index cache: %w", err)
	}
	return nil
}

func writeFile(file string, parts ...[]byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	unpack.Sweep(filepath.Join(filepath.Dir(file), "index-*.tmp"))
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	lock, err := unpack.Lock(f.Name())
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), file)
}
