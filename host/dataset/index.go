package dataset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Split names one of the two lists of a data set.
type Split int

// Train is metadata_train.csv or train.jsonl where there is one, Eval is metadata_eval.csv or eval.jsonl; otherwise both
// are metadata.csv or manifest.jsonl.
const (
	Train Split = iota
	Eval
)

// Config says what Open indexes. Dir, SampleRate and Tokenizer are needed.
type Config struct {
	// Dir is a folder with lists, or a JSON Lines file, which then is the list of both splits: docs/data.md.
	Dir   string
	Split Split
	// SampleRate is that of the feature contract, in Hz; audio is resampled to it.
	SampleRate int
	// Tokenizer may be nil when no text tensor is consumed; rows then have no tokens.
	Tokenizer *Tokenizer
	// Language of rows whose line names none, "en" when empty.
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
	Text           string  // in NFC, without control characters
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

// UnknownChar is a character that the tokenizer's vocabulary lacks. A tokenizer with byte fallback spells it in bytes, and
// any other has one token for all of them.
type UnknownChar struct {
	Char    rune // after the tokenizer's own normalization
	Count   int
	Place   string // where it was met first, as "metadata.csv:12"
	Instead rune   // in the vocabulary for the same letter or digit; 0 without one
}

// Index lists the rows of a data set. Its fields are read-only after Open.
type Index struct {
	Dir        string // absolute: the list's folder
	List       string // the list's file name
	SampleRate int
	Rows       []Row      // in file order
	Rejected   []Rejected // in file order
	// Unknown are the characters of the texts that the vocabulary lacks, as they were met. ByteFallback says that the
	// tokenizer spells them in bytes.
	Unknown      []UnknownChar
	ByteFallback bool
	Speakers     []string // Config.Speakers, then others in file order
	Languages    []string
	// Cached says that the index came from the cache. CacheError says why the cache could not be read or written; the
	// index is complete all the same.
	Cached     bool
	CacheError error
}

// Open indexes a data set: it reads the list, the header of every audio file, and the tokens of every text, or takes
// all that from the cache when list, files (by size and time), tokenizer and sample rate are the same. Files that the
// operating system did not let it read are tried each time.
//
// A line whose text or audio cannot be used is in Index.Rejected and does not fail Open. Open fails on ids that occur
// twice or leave the folder, on a missing list and one with a line of more than 1 MiB, when ctx ends, and with ErrNoRows
// when no row is left.
func Open(ctx context.Context, cfg Config) (*Index, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	if cfg.Language == "" {
		cfg.Language = "en"
	}
	ix := &Index{SampleRate: cfg.SampleRate}
	if err := ix.open(ctx, cfg); err != nil {
		return nil, fmt.Errorf("data set %s: %w", cfg.Dir, err)
	}
	return ix, nil
}

func (ix *Index) open(ctx context.Context, cfg Config) error {
	if cfg.SampleRate <= 0 {
		return fmt.Errorf("sample rate of %d Hz", cfg.SampleRate)
	}
	path, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return err
	}
	if ix.Dir, ix.List, err = locate(path, cfg.Split); err != nil {
		return err
	}
	entries, sum, err := readList(filepath.Join(ix.Dir, ix.List))
	if err != nil {
		return err
	}
	ix.ByteFallback = cfg.Tokenizer != nil && cfg.Tokenizer.ByteFallback()
	s := newScan(ix, cfg, entries)
	if err := s.stat(ctx); err != nil {
		return err
	}
	cache := newCache(ix, cfg)
	key := s.key(sum)
	scanned, err := cache.load(key, len(entries))
	ix.Cached, ix.CacheError = scanned != nil, err
	changed := false
	if ix.Cached {
		changed, err = s.again(ctx, scanned)
	} else {
		changed = true
		scanned, err = s.run(ctx)
	}
	if err != nil {
		return err
	}
	if changed {
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
	r, form := ix.Rejected[0], "each line is id|text, and its audio is wavs/<id>.wav"
	if jsonLines(ix.List) {
		form = `each line is an object such as {"audio_filepath": "clips/1.wav", "text": "One."}`
	}
	return hint.Errorf(form,
		"%s: %w: all %d lines are rejected, the first (%s) because: %s", ix.List, ErrNoRows, len(ix.Rejected), r.Place, r.Reason)
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
			ix.Rejected = append(ix.Rejected, Rejected{Place: place, ID: e.id, Path: files[i].path, Reason: s.Reason})
			continue
		}
		language := cmp.Or(e.language, cfg.Language)
		ix.Rows = append(ix.Rows, Row{
			ID: e.id, Path: files[i].path, Line: e.line,
			Offset: s.Offset, Frames: s.Frames, FileRate: s.Rate, FileChannels: s.Channels, Samples: s.Samples,
			Text: e.text, Tokens: s.Tokens,
			Language: language, Speaker: e.speaker, LanguageID: languageID(language), SpeakerID: speakerID(e.speaker),
		})
		for _, c := range s.Unknown {
			at, ok := unknown[c]
			if !ok {
				at = len(ix.Unknown)
				unknown[c] = at
				ix.Unknown = append(ix.Unknown, UnknownChar{Char: c, Place: place, Instead: cfg.Tokenizer.instead(c)})
			}
			ix.Unknown[at].Count++
		}
	}
}

// audioPath returns where the recording is looked for first (see statAudio), "" where the line does not say it. Lists may name files anywhere: see
// docs/data.md.
func (ix *Index) audioPath(e *entry) string {
	path := filepath.FromSlash(e.audio)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(ix.Dir, path)
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
