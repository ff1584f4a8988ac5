package dataset

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/shared/audio"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/plain"
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
	// Prefix comes before each text: added tokens of the tokenizer, with {language} for the language of the row.
	Prefix string
	// Language is the language of rows whose line names none; empty means "en".
	Language string
	// Speakers and Languages are the first entries of the index's lists, so known names keep their numbers. An
	// evaluation set gets those of the training set.
	Speakers, Languages []string
	// Normalize are further changes of texts.
	Normalize texts.Rules
	// MinSamples is the length of the shortest clip that can be used, in samples at SampleRate.
	MinSamples int
	// Columns are the tensors that come from columns of the list, which is then JSON Lines. It may be nil.
	Columns *Columns
	// CacheDir is the folder of the index cache. Open creates it if it does not exist. Empty means no cache.
	CacheDir string
	// Workers is the number of files to read at a time; 0 means 8, because reading headers waits for the disk.
	Workers int
	// Layout is how the list is laid out, as --list-layout says it; "" or "auto" for what the list shows
	// (docs/data.md). Before means that the run is older than the recognition of layouts: a list that would now be read
	// in another way is refused. LayoutFlag is the flag of Layout, for messages; "" means --list-layout.
	Layout, LayoutFlag string
	Before             bool
	// Empty means that a list without a usable line is no error.
	Empty bool
	// Refusals is the number of ambiguous lines that the error lists; 0 means 5.
	Refusals int
	// Progress may be nil.
	Progress Progress
}

// DefaultLanguage is the language of a text that has none.
const DefaultLanguage = "en"

// Progress is called often while a list or its recordings are read, by one goroutine: so many of a number of things,
// such as "lines of train.jsonl", are done. The number is 0 if it is not known.
type Progress func(what string, done, of int)

// Row is one utterance.
type Row struct {
	ID   string
	Path string // of the audio file
	Line int    // in the list
	// Offset and Frames are the part of the file that is the clip, in samples per channel at the file's own rate.
	Offset, Frames int
	FileRate       int // of the file, in Hz
	FileChannels   int
	Remarks        Remarks // what is wrong with the file, although it is read
	Samples        int     // samples of the clip at the index's sample rate: ceil(Frames*rate/FileRate)
	Text           string  // in NFC, without control characters
	Tokens         int     // number of token ids of the text
	LanguageID     int32   // index into Index.Languages
	SpeakerID      int32   // index into Index.Speakers
	// Values are those of Index.Columns.
	Values []Value
}

// Remarks say what is wrong with a recording that is read all the same; String names it.
type Remarks = audio.Remarks

// Rejected is an unusable line of the list. It is not a row of the index.
type Rejected struct {
	Line   int // in the list
	ID     string
	Path   string // of the recording
	Reason string
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
	Columns    *Columns   // of the rows
	Rows       []Row      // in file order
	Rejected   []Rejected // in file order
	// Unknown are the characters of the texts that the vocabulary does not contain, in the order of their first
	// occurrence. ByteFallback means that the tokenizer encodes them as bytes.
	Unknown      []UnknownChar
	ByteFallback bool
	Ignored      []IgnoredKey // in the order of their first occurrence, at most MaxIgnored
	Speakers     []string     // Config.Speakers, then others in file order
	Languages    []string
	// Cached means that no header of a recording had to be read. CacheError is the reason why the cache could not be
	// read or written; the index is complete anyway.
	Cached     bool
	CacheError error
	// Contents identifies the bytes of the recordings and arrays of all rows, once ReadContents has read them.
	Contents string
	// Layout is how the list was read, as --list-layout says it, LayoutText the same in words, and Remarks are what is
	// unusual about its lines.
	Layout, LayoutText string
	Remarks            []string
	// NamesLanguages means that a line of the list names the language of its text, or the layout does.
	NamesLanguages bool

	// Normalized counts the rows whose texts Config.Normalize has changed.
	Normalized int

	layout     *layout.Decision
	places     []string // of the lines, if the list was made from a folder
	tokenizer  *Tokenizer
	prefix     string // Config.Prefix
	hash       string
	recordings *recordings
}

// A list of so many lines is most of the memory, and garbage of the same size would double it.
const (
	largeList   = 500_000
	goodGarbage = 25 // percent of the memory in use
)

// Open indexes a data set: it reads the list, finds every recording, and reads the headers of those that the cache does
// not know in their present state (size, times and inode).
//
// A line with unusable text or audio is added to Index.Rejected; Open does not fail. Open fails on ids that occur twice
// or leave the folder, on a missing list, on a line of more than 1 MiB, if ctx ends, and with ErrNoRows if no row is
// left.
func Open(ctx context.Context, cfg Config) (*Index, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	if cfg.Language == "" {
		cfg.Language = DefaultLanguage
	}
	if cfg.Refusals == 0 {
		cfg.Refusals = 5
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, int, int) {}
	}
	ix := &Index{SampleRate: cfg.SampleRate, Columns: cfg.Columns, tokenizer: cfg.Tokenizer, prefix: cfg.Prefix}
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
	list, err := ix.find(ctx, cfg, path)
	if err != nil {
		return err
	}
	if closer, ok := list.(io.Closer); ok {
		defer closer.Close()
	}
	ix.ByteFallback = cfg.Tokenizer != nil && cfg.Tokenizer.ByteFallback()
	ix.recordings, ix.CacheError = loadRecordings(cfg.CacheDir, ix.Dir, ix.List, cfg.Columns)
	if keys := cfg.Columns.Keys(); len(keys) > 0 && ix.layout.Kind != layout.Objects {
		return hint.Errorf("write the list as JSON Lines (docs/data.md)",
			"%s: the model takes %s from the list, which this format cannot have", ix.List, strings.Join(keys, ", "))
	}
	if err := ix.read(ctx, cfg, list); err != nil {
		return err
	}
	ix.Cached = len(ix.recordings.uses) > 0 && !ix.recordings.changed
	if err := ix.recordings.store(); err != nil {
		ix.CacheError = err
	}
	if cfg.Empty {
		return nil
	}
	return ix.Usable()
}

// Remedy returns what mends lines that cannot be used all at once, "" for nothing.
func (ix *Index) Remedy(lines []Rejected) string {
	if !slices.ContainsFunc(lines, func(r Rejected) bool { return r.Reason == notUTF8 }) {
		return ""
	}
	convert := plain.Convert("LATIN1", filepath.Join(ix.Dir, ix.List))
	if len(ix.Rows) == 0 {
		return "if the list is in Latin-1, convert it: " + convert
	}
	return "if only the lines that are not UTF-8 are in Latin-1, correct those; if the whole list is, convert it: " +
		convert
}

// Usable returns the error of a list without a usable line, nil for any other.
func (ix *Index) Usable() error {
	if len(ix.Rows) > 0 {
		return nil
	}
	if len(ix.Rejected) == 0 {
		return fmt.Errorf("%s: %w", ix.List, ErrNoRows)
	}
	r, form := ix.Rejected[0], fmt.Sprintf("the list was read as %s, with the recordings in %s (docs/data.md#layouts)",
		ix.LayoutText, cmp.Or(ix.layout.Base, "./"))
	switch {
	case ix.layout.Kind == layout.Objects:
		form = `each line is an object such as {"audio_filepath": "clips/1.wav", "text": "One."}`
		if keys := ix.Columns.Keys(); len(keys) > 0 {
			form += ", and has " + strings.Join(keys, ", ")
		}
	case ix.layout.Name == "ljspeech":
		form = "each line is id|text, and its audio is wavs/<id>.wav"
	}
	rejected := fmt.Sprintf("all %d lines are rejected, the first", len(ix.Rejected))
	if len(ix.Rejected) == 1 {
		rejected = "its only line is rejected"
	}
	return hint.Errorf(cmp.Or(ix.Remedy(ix.Rejected[:1]), form), "%s: %w: %s (%s) because: %s", ix.List, ErrNoRows,
		rejected, ix.Place(r.Line), r.Reason)
}

// read fills the index from the lines of the list.
func (ix *Index) read(ctx context.Context, cfg Config, list io.Reader) error {
	lines := ix.layout.Lines
	if lines >= largeList {
		defer debug.SetGCPercent(debug.SetGCPercent(goodGarbage))
	}
	s, b := newScan(ix, cfg), newBuilder(ix, cfg, lines)
	err := s.run(ctx, list, func(block *block) {
		for i := range block.rows {
			if b.add(&block.rows[i]); len(b.ids.errs) > 0 {
				s.idle.Store(true) // the list is refused, so only its lines are read on
			}
		}
		if n := len(block.numbers); n > 0 {
			cfg.Progress("lines of "+ix.List, block.numbers[n-1], max(lines, block.numbers[n-1]))
		}
	})
	if err == nil {
		err = b.ids.err()
	}
	b.end()
	return err
}

// Place names a line of the list, as "metadata.csv:12".
func (ix *Index) Place(line int) string {
	if ix.places != nil && line <= len(ix.places) {
		return ix.places[line-1]
	}
	return fmt.Sprintf("%s:%d", ix.List, line)
}

// TooLong says why no bucket holds a row, in seconds if it is its clip that is too long.
func (ix *Index) TooLong(e Excluded) string {
	if e.Symbol != manifest.SymbolWav {
		return e.Reason
	}
	rate := float64(ix.SampleRate)
	return fmt.Sprintf("the clip has %.2f s, and the model takes %.2f s at most", float64(ix.Rows[e.Row].Samples)/rate,
		float64(e.Limit)/rate)
}

// Tokens returns the token ids of a row's text.
func (ix *Index) Tokens(r *Row) []int32 {
	if ix.tokenizer == nil {
		return nil
	}
	ids, _ := ix.tokenizer.prefix(ix.prefix, ix.Languages[r.LanguageID]) // the scan has refused rows without one
	of, _ := ix.tokenizer.Encode(r.Text)
	return append(ids, of...)
}

// Hash identifies the rows, independent of the folder and of file times: the hex SHA-256 of the sample rate and of
// every row's id, tokens, language, speaker, clip and values of columns. Of arrays, it has the lengths.
func (ix *Index) Hash() string { return ix.hash }
