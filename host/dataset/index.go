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

// Train is metadata_train.csv or train.jsonl if it exists, Eval is metadata_eval.csv or eval.jsonl; otherwise both are
// metadata.csv or manifest.jsonl.
const (
	Train Split = iota
	Eval
)

// Config says what Open indexes. Dir, SampleRate and Tokenizer are required.
type Config struct {
	// Dir is a folder with lists, or a JSON Lines file, which is then the list of both splits (docs/data.md).
	Dir   string
	Split Split
	// SampleRate is that of the feature contract, in Hz. Audio is resampled to it.
	SampleRate int
	// Tokenizer may be nil if no text tensor is used. Then rows have no tokens.
	Tokenizer *Tokenizer
	// Language is the language of rows whose line names none; empty means "en".
	Language string
	// Speakers and Languages are the first entries of the index's lists, so known names keep their numbers. An
	// evaluation set gets those of the training set.
	Speakers, Languages []string
	// MinSamples is the length of the shortest clip that can be used, in samples at SampleRate.
	MinSamples int
	// CacheDir is the folder of the index cache. Open creates it if it does not exist. Empty means no cache.
	CacheDir string
	// Workers is the number of files to read at a time; 0 means 8, because reading headers waits for the disk.
	Workers int
}

// Row is one utterance.
type Row struct {
	ID   string
	Path string // of the audio file
	Line int    // in the list
	// Offset and Frames are the part of the file that is the clip, in samples per channel at the file's own rate.
	Offset, Frames int
	FileRate       int // of the file, in Hz
	FileChannels   int
	Samples        int     // samples of the clip at the index's sample rate: ceil(Frames*rate/FileRate)
	Text           string  // in NFC, without control characters
	Tokens         []int32 // token ids of the text
	Language       string
	Speaker        string
	LanguageID     int32 // index into Index.Languages
	SpeakerID      int32 // index into Index.Speakers
}

// Rejected is an unusable line of the list. It is not a row of the index.
type Rejected struct {
	Place  string `json:"place"` // list file and line, as "metadata.csv:12"
	ID     string `json:"id,omitempty"`
	Path   string `json:"path,omitempty"`
	Reason string `json:"reason"`
}

// UnknownChar is a character that the tokenizer's vocabulary does not contain. A tokenizer with byte fallback encodes
// it as bytes; any other tokenizer has one token for all unknown characters.
type UnknownChar struct {
	Char    rune // after the tokenizer's own normalization
	Count   int
	Place   string // first occurrence, as "metadata.csv:12"
	Instead rune   // the character in the vocabulary for the same letter or digit, or 0
}

// Index lists the rows of a data set. Its fields are read-only after Open.
type Index struct {
	Dir        string // absolute path of the list's folder
	List       string // file name of the list
	SampleRate int
	Rows       []Row      // in file order
	Rejected   []Rejected // in file order
	// Unknown are the characters of the texts that the vocabulary does not contain, in the order of their first
	// occurrence. ByteFallback means that the tokenizer encodes them as bytes.
	Unknown      []UnknownChar
	ByteFallback bool
	Speakers     []string // Config.Speakers, then others in file order
	Languages    []string
	// Cached means that the index came from the cache. CacheError is the reason why the cache could not be read or
	// written; the index is complete anyway.
	Cached     bool
	CacheError error
	// Contents identifies the bytes of the recordings of all rows, once ReadContents has read them.
	Contents string

	states []half // of the recordings of Rows
}

// Open indexes a data set: it reads the list, the header of every audio file and the tokens of every text. It takes all
// of them from the cache if list, files (by size and time), tokenizer and sample rate are unchanged. It retries files
// that the operating system did not allow it to read.
//
// A line with unusable text or audio is added to Index.Rejected; Open does not fail. Open fails on ids that occur twice
// or leave the folder, on a missing list, on a line of more than 1 MiB, if ctx ends, and with ErrNoRows if no row is
// left.
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

// fill creates rows from the usable entries and collects the others.
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
		ix.states = append(ix.states, files[i].state)
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

// audioPath returns the first path at which to look for the recording (see statAudio), or "" if the line has none.
// Lists may name any file (docs/data.md).
func (ix *Index) audioPath(e *entry) string {
	path := filepath.FromSlash(e.audio)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(ix.Dir, path)
}

// Hash identifies the rows, independent of the folder and of file times: the hex SHA-256 of the sample rate and of
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
