package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Split names one of the two lists of a data set.
type Split int

// Train is metadata_train.csv where there is one, Eval is metadata_eval.csv where there is one; otherwise both are
// metadata.csv.
const (
	Train Split = iota
	Eval
)

// Config says what Open indexes. Dir, SampleRate and Tokenizer are needed.
type Config struct {
	// Dir is a folder in the layout of LJSpeech: metadata.csv and wavs/<id>.wav. An id A/0001 has the speaker A.
	Dir   string
	Split Split
	// SampleRate is that of the feature contract, in Hz; audio is resampled to it.
	SampleRate int
	// Tokenizer may be nil when no text tensor is consumed; rows then have no tokens.
	Tokenizer *Tokenizer
	// Language of all rows, "en" when empty.
	Language string
	// Speakers and Languages come first in those of the index and so fix the numbers of known names. An evaluation set
	// is given those of the training set's index.
	Speakers, Languages []string
	// CacheDir is the folder of the index cache, made when missing. Empty: no cache.
	CacheDir string
	// Workers is the number of files read at a time, 8 when 0: reading headers waits for the disk.
	Workers int
}

// Row is one utterance.
type Row struct {
	ID   string
	Path string // of the audio file
	Line int    // in the list
	// Offset and Frames give the part of the file that is the clip, in samples per channel at the file's own rate.
	Offset, Frames int
	FileRate       int // of the file, in Hz
	FileChannels   int
	Samples        int     // of the clip at the index's sample rate: ceil(Frames*rate/FileRate)
	Text           string  // as in the list
	Tokens         []int32 // token ids of the text
	Language       string
	Speaker        string
	LanguageID     int32 // place in Index.Languages
	SpeakerID      int32 // place in Index.Speakers
}

// Rejected is a line of the list that cannot be used. It is no row of the index.
type Rejected struct {
	Place  string `json:"place"` // list file and line, as "metadata.csv:12"
	ID     string `json:"id,omitempty"`
	Path   string `json:"path,omitempty"`
	Reason string `json:"reason"`
}

// UnknownChar is a character that the tokenizer's vocabulary lacks.
type UnknownChar struct {
	Char  rune
	Count int
	Place string // where it was met first, as "metadata.csv:12"
}

// Index lists the rows of a data set. Its fields are read-only after Open.
type Index struct {
	Dir        string // absolute
	List       string // the list's file name
	SampleRate int
	Rows       []Row      // in file order
	Rejected   []Rejected // in file order
	Unknown    []UnknownChar
	Speakers   []string // Config.Speakers, then others in file order
	Languages  []string
	// Cached says that the index came from the cache. CacheError says why the cache could not be read or written; the
	// index is complete all the same.
	Cached     bool
	CacheError error
}

// HasEval reports whether the folder has a list of its own for evaluation.
func HasEval(dir string) (bool, error) {
	return exists(filepath.Join(dir, listEval))
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Open indexes a data set: it reads the list, the header of every audio file, and the tokens of every text, or takes
// all that from the cache when list, files (by size and time), tokenizer and sample rate are the same.
//
// A line whose text or audio cannot be used is in Index.Rejected and does not fail Open. Open fails on ids that occur
// twice or leave the folder, on a missing list, when ctx ends, and with ErrNoRows when no row is left.
func Open(ctx context.Context, cfg Config) (*Index, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	if cfg.Language == "" {
		cfg.Language = "en"
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", cfg.Dir, err)
	}
	ix := &Index{Dir: dir, SampleRate: cfg.SampleRate}
	if err := ix.open(ctx, cfg); err != nil {
		return nil, fmt.Errorf("data set %s: %w", cfg.Dir, err)
	}
	return ix, nil
}

func (ix *Index) open(ctx context.Context, cfg Config) error {
	if cfg.SampleRate <= 0 {
		return fmt.Errorf("sample rate of %d Hz", cfg.SampleRate)
	}
	data, err := ix.readList(cfg.Split)
	if err != nil {
		return err
	}
	entries, err := parseList(ix.List, data)
	if err != nil {
		return err
	}
	s := newScan(ix, cfg, entries)
	if err := s.stat(ctx); err != nil {
		return err
	}
	cache := newCache(ix, cfg)
	key := s.key(data)
	scanned, err := cache.load(key, len(entries))
	ix.Cached, ix.CacheError = scanned != nil, err
	if scanned == nil {
		if scanned, err = s.run(ctx); err != nil {
			return err
		}
		if err := cache.store(key, scanned); err != nil {
			ix.CacheError = err
		}
	}
	ix.fill(cfg, entries, s.files, scanned)
	if len(ix.Rows) > 0 {
		return nil
	}
	if len(ix.Rejected) == 0 {
		return fmt.Errorf("%s: %w", ix.List, ErrNoRows)
	}
	r := ix.Rejected[0]
	return hint.Errorf("each line is id|text, and its audio is wavs/<id>.wav",
		"%s: %w: all %d lines are rejected, the first (%s) because: %s", ix.List, ErrNoRows, len(ix.Rejected), r.Place, r.Reason)
}

func (ix *Index) readList(split Split) ([]byte, error) {
	own := listTrain
	if split == Eval {
		own = listEval
	}
	for _, name := range []string{own, listAll} {
		ix.List = name
		data, err := os.ReadFile(filepath.Join(ix.Dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return nil, hint.Errorf("a data set is a folder with metadata.csv (id|text) and wavs/<id>.wav", "neither %s nor %s is there", own, listAll)
}

// fill makes rows of the usable entries and collects the others.
func (ix *Index) fill(cfg Config, entries []entry, files []audioFile, scanned []scannedRow) {
	ix.Speakers, ix.Languages = slices.Clone(cfg.Speakers), slices.Clone(cfg.Languages)
	number := func(names *[]string) func(string) int32 {
		ids := make(map[string]int32, len(*names))
		for i, name := range *names {
			ids[name] = int32(i)
		}
		return func(name string) int32 {
			id, ok := ids[name]
			if !ok {
				id = int32(len(*names))
				ids[name] = id
				*names = append(*names, name)
			}
			return id
		}
	}
	speakerID, languageID := number(&ix.Speakers), number(&ix.Languages)
	unknown := map[rune]int{}
	ix.Rows = make([]Row, 0, len(entries))
	for i, e := range entries {
		s := &scanned[i]
		place := fmt.Sprintf("%s:%d", ix.List, e.line)
		if s.Reason != "" {
			r := Rejected{Place: place, ID: e.id, Reason: s.Reason}
			if e.id != "" {
				r.Path = files[i].path
			}
			ix.Rejected = append(ix.Rejected, r)
			continue
		}
		speaker := speakerOf(e.id)
		ix.Rows = append(ix.Rows, Row{
			ID: e.id, Path: files[i].path, Line: e.line,
			Frames: s.Frames, FileRate: s.Rate, FileChannels: s.Channels, Samples: s.Samples,
			Text: e.text, Tokens: s.Tokens,
			Language: cfg.Language, Speaker: speaker, LanguageID: languageID(cfg.Language), SpeakerID: speakerID(speaker),
		})
		for _, c := range s.Unknown {
			at, ok := unknown[c]
			if !ok {
				at = len(ix.Unknown)
				unknown[c] = at
				ix.Unknown = append(ix.Unknown, UnknownChar{Char: c, Place: place})
			}
			ix.Unknown[at].Count++
		}
	}
}

// audioPath is where the audio of an id is looked for first; see statAudio.
func (ix *Index) audioPath(id string) string {
	return filepath.Join(ix.Dir, "wavs", filepath.FromSlash(id)+".wav")
}

// Hash identifies what the rows are, whatever the folder and the files' times: the hex SHA-256 over the sample rate and
// every row's id, tokens, language, speaker and clip.
func (ix *Index) Hash() string {
	h := sha256.New()
	var b []byte
	add := func(r *Row) {
		b = appendField(b[:0], r.ID)
		b = appendField(b, r.Text)
		b = appendField(b, r.Language)
		b = appendField(b, r.Speaker)
		for _, n := range []int{r.Offset, r.Frames, r.FileRate, r.FileChannels, len(r.Tokens)} {
			b = appendInt(b, int64(n))
		}
		for _, token := range r.Tokens {
			b = appendInt(b, int64(token))
		}
		h.Write(b)
	}
	h.Write(appendInt(nil, int64(ix.SampleRate)))
	for i := range ix.Rows {
		add(&ix.Rows[i])
	}
	return hex.EncodeToString(h.Sum(nil))
}
