package dataset

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/xtts-host/xtts-host/host/dataset/internal/resample"
	"github.com/xtts-host/xtts-host/host/dataset/internal/wav"
)

// scannedRow is what the files and the tokenizer say about one entry of the list: what the cache keeps.
type scannedRow struct {
	Reason   string // why the entry cannot be used; then the rest is empty
	Frames   int
	Rate     int
	Channels int
	Samples  int
	Tokens   []int32
	Unknown  []rune
}

// scan reads what an index needs to know of its files, several at a time.
type scan struct {
	cfg     Config
	dir     string
	entries []entry
	paths   []string // empty for an entry without audio
	sizes   []int64  // -1 where there is no file
	times   []int64  // of the last change, in nanoseconds since 1970
}

func newScan(ix *Index, cfg Config, entries []entry) *scan {
	s := &scan{cfg: cfg, dir: ix.Dir, entries: entries,
		paths: make([]string, len(entries)), sizes: make([]int64, len(entries)), times: make([]int64, len(entries))}
	for i, e := range entries {
		if e.reason == "" {
			s.paths[i] = ix.audioPath(e.id)
		}
	}
	return s
}

// stat finds size and time of every audio file. That is cheap even where opening them is not, and enough to know
// whether the cache is good.
func (s *scan) stat(ctx context.Context) error {
	return s.each(ctx, func(i int) error {
		s.sizes[i] = -1
		if s.paths[i] == "" {
			return nil
		}
		info, err := os.Stat(s.paths[i])
		if err != nil {
			return hostTrouble(err) // run will say what is wrong with the file
		}
		s.sizes[i], s.times[i] = info.Size(), info.ModTime().UnixNano()
		return nil
	})
}

// key identifies everything that a scan depends on.
func (s *scan) key(list []byte) [sha256.Size]byte {
	tokenizer := ""
	if s.cfg.Tokenizer != nil {
		tokenizer = s.cfg.Tokenizer.Hash()
	}
	b := appendField(nil, string(list))
	b = appendField(b, tokenizer)
	b = appendInt(b, int64(s.cfg.SampleRate))
	for i := range s.entries {
		b = appendInt(b, s.sizes[i])
		b = appendInt(b, s.times[i])
	}
	return sha256.Sum256(b)
}

// run reads the headers and tokenizes the texts.
func (s *scan) run(ctx context.Context) ([]scannedRow, error) {
	rows := make([]scannedRow, len(s.entries))
	err := s.each(ctx, func(i int) error {
		row, err := s.row(i)
		if hostTrouble(err) != nil {
			return err
		}
		if err != nil {
			row = scannedRow{Reason: err.Error()}
		}
		rows[i] = row
		return nil
	})
	return rows, err
}

func (s *scan) row(i int) (scannedRow, error) {
	e := s.entries[i]
	if e.reason != "" {
		return scannedRow{}, errors.New(e.reason)
	}
	h, err := readHeader(s.paths[i])
	if errors.Is(err, fs.ErrNotExist) {
		rel, _ := filepath.Rel(s.dir, s.paths[i])
		return scannedRow{}, fmt.Errorf("there is no %s", filepath.ToSlash(rel))
	}
	if err != nil {
		return scannedRow{}, err
	}
	if h.Frames == 0 {
		return scannedRow{}, errors.New("the audio has no samples")
	}
	row := scannedRow{Frames: h.Frames, Rate: h.SampleRate, Channels: h.Channels, Samples: resample.Len(h.Frames, h.SampleRate, s.cfg.SampleRate)}
	if s.cfg.Tokenizer == nil {
		return row, nil
	}
	row.Tokens, row.Unknown = s.cfg.Tokenizer.Encode(e.text)
	if len(row.Tokens) == 0 {
		return scannedRow{}, errors.New("the text has no tokens")
	}
	return row, nil
}

func readHeader(path string) (wav.Header, error) {
	f, size, err := openAudio(path)
	if err != nil {
		return wav.Header{}, err
	}
	defer f.Close()
	return wav.ReadHeader(f, size)
}

// openAudio opens a regular file and returns its size. Anything else is refused before it is opened, because opening
// a named pipe waits for ever.
func openAudio(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	return f, info.Size(), err
}

// hostTrouble returns the errors that are no fault of a file: they stop the run instead of rejecting rows.
func hostTrouble(err error) error {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return err
		}
	}
	return nil
}

// each calls do for every entry from Config.Workers goroutines and waits for them. It stops early at the first error.
func (s *scan) each(ctx context.Context, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(s.cfg.Workers, len(s.entries)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(s.entries) {
					return
				}
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
