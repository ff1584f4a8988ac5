package dataset

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/dataset/internal/audio"
	"github.com/xtts-host/xtts-host/host/dataset/internal/resample"
	"github.com/xtts-host/xtts-host/shared/regular"
)

// scannedRow is the result of reading the files and the text of one entry of the list. The cache stores it.
type scannedRow struct {
	Reason   string // why the entry is unusable; then the rest is empty
	Again    bool   // the reason may go away without a change of the file, such as missing permission
	Offset   int    // part of the file that is the clip, in frames like the next field
	Frames   int
	Rate     int
	Channels int
	Samples  int
	Tokens   []int32
	Unknown  []rune
}

// maxText is the maximum length of a text, in characters: some minutes of speech. The time for merging grows with the
// square of a word's length, and a text without spaces is one word.
const maxText = 4096

// scan reads what an index needs from its files, several at a time.
type scan struct {
	cfg     Config
	entries []entry
	files   []audioFile // of each entry
}

// audioFile is what is known about a file without opening it.
type audioFile struct {
	path   string
	size   int64 // -1 if there is no readable file
	time   int64 // of the last change, in nanoseconds since 1970
	state  half
	reason string
}

func newScan(ix *Index, cfg Config, entries []entry) *scan {
	s := &scan{cfg: cfg, entries: entries, files: make([]audioFile, len(entries))}
	for i, e := range entries {
		s.files[i] = audioFile{path: ix.audioPath(&e), size: -1, reason: e.reason}
	}
	return s
}

// stat reads size and time of every audio file. That is cheap even if opening them is not, and sufficient to validate
// the cache.
func (s *scan) stat(ctx context.Context) error {
	return s.each(ctx, func(i int) error {
		f := &s.files[i]
		if f.reason != "" {
			return nil
		}
		path, info, err := statAudio(f.path, s.entries[i].flac)
		f.path = path
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.reason = "there is no " + s.entries[i].audio
			if s.entries[i].flac {
				f.reason += " or .flac"
			}
		case err != nil:
			f.reason = reason(err)
		default:
			f.size, f.time, f.state = info.Size(), info.ModTime().UnixNano(), stateOf(path, info)
		}
		return hostTrouble(err)
	})
}

// statAudio finds an audio file: the path, or, if it does not exist and flac is set, the .flac file of the same name.
// It opens nothing.
func statAudio(path string, flac bool) (string, fs.FileInfo, error) {
	info, err := regular.Stat(path)
	if stem, ok := strings.CutSuffix(path, ".wav"); flac && ok && errors.Is(err, fs.ErrNotExist) {
		if info, err := regular.Stat(stem + ".flac"); !errors.Is(err, fs.ErrNotExist) {
			return stem + ".flac", info, err
		}
	}
	return path, info, err
}

// key identifies everything that a scan depends on.
func (s *scan) key(list [sha256.Size]byte) [sha256.Size]byte {
	tokenizer := ""
	if s.cfg.Tokenizer != nil {
		tokenizer = s.cfg.Tokenizer.Hash()
	}
	b := appendField(nil, string(list[:]))
	b = appendField(b, tokenizer)
	b = appendInt(b, int64(s.cfg.SampleRate))
	b = appendInt(b, int64(s.cfg.MinSamples))
	for i := range s.files {
		b = appendInt(b, s.files[i].size)
		b = appendInt(b, s.files[i].time)
	}
	return sha256.Sum256(b)
}

// run reads the headers and tokenizes the texts.
func (s *scan) run(ctx context.Context) ([]scannedRow, error) {
	rows := make([]scannedRow, len(s.entries))
	err := s.each(ctx, func(i int) error { return s.read(&rows[i], i) })
	return rows, err
}

// again retries the entries whose result may change without a change of the file, and reports whether anything is new.
func (s *scan) again(ctx context.Context, rows []scannedRow) (changed bool, err error) {
	var news atomic.Bool
	err = s.each(ctx, func(i int) error {
		if !rows[i].Again {
			return nil
		}
		was := rows[i].Reason
		err := s.read(&rows[i], i)
		if rows[i].Reason != was {
			news.Store(true)
		}
		return err
	})
	return news.Load(), err
}

// read fills in an entry. The error is not about the entry.
func (s *scan) read(row *scannedRow, i int) error {
	got, err := s.row(i)
	if hostTrouble(err) != nil {
		return err
	}
	if err != nil {
		// Errors of the operating system are not about the content of the file, whose size and time validate the cache.
		var system *fs.PathError
		got = scannedRow{Reason: reason(err), Again: errors.As(err, &system) || s.files[i].size < 0}
	}
	*row = got
	return nil
}

func (s *scan) row(i int) (scannedRow, error) {
	if reason := s.files[i].reason; reason != "" {
		return scannedRow{}, errors.New(reason)
	}
	h, err := readHeader(s.files[i].path)
	if err != nil {
		return scannedRow{}, err
	}
	if h.Frames == 0 {
		return scannedRow{}, errors.New("the audio has no samples")
	}
	if err := checkRate(h.SampleRate, s.cfg.SampleRate); err != nil {
		return scannedRow{}, err
	}
	e := &s.entries[i]
	row := scannedRow{Rate: h.SampleRate, Channels: h.Channels}
	if row.Offset, row.Frames, err = e.part.frames(h.Frames, h.SampleRate); err != nil {
		return scannedRow{}, err
	}
	row.Samples = resample.Len(row.Frames, h.SampleRate, s.cfg.SampleRate)
	if row.Samples < s.cfg.MinSamples {
		return scannedRow{}, fmt.Errorf("the clip has %d samples at %d Hz, fewer than the %d of one window of the features", row.Samples, s.cfg.SampleRate, s.cfg.MinSamples)
	}
	if s.cfg.Tokenizer == nil {
		return row, nil
	}
	if n := utf8.RuneCountInString(e.text); n > maxText {
		return scannedRow{}, fmt.Errorf("the text has %d characters, more than %d", n, maxText)
	}
	row.Tokens, row.Unknown = s.cfg.Tokenizer.Encode(e.text)
	if len(row.Tokens) == 0 {
		return scannedRow{}, errors.New("the text has no tokens")
	}
	return row, nil
}

func readHeader(path string) (audio.Info, error) {
	f, err := audio.Open(path)
	if err != nil {
		return audio.Info{}, err
	}
	defer f.Close()
	return f.Info, nil
}

// hostTrouble returns the errors that are not caused by a file: they stop the run instead of rejecting rows.
func hostTrouble(err error) error {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return err
		}
	}
	return nil
}

// each calls do for every entry from Config.Workers goroutines and waits for them. It stops at the first error.
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
