package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/shared/audio"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// scannedRow is a line of the list with what its recording and its text give.
type scannedRow struct {
	entry
	refused   error  // why the line makes the list ambiguous
	path      string // of the recording
	known     int32  // place of the recording in Index.recordings, -1 for a new one
	recording recording
	arrays    []foundArray // of the columns of origin file, in order
	// The part of the recording that is the clip, in frames, and its length at the index's sample rate.
	offset, frames, samples int
	tokens                  int    // number of token ids of the text
	fields                  []byte // the ids as Index.Hash takes them
	unknown                 []rune
	normalized              bool
}

// maxText is the maximum length of a text, in characters: some minutes of speech. The time for merging grows with the
// square of a word's length, and a text without spaces is one word.
const maxText = 4096

// scan reads what an index needs from the lines, several at a time.
type scan struct {
	cfg    Config
	dir    string
	name   string // of the list
	parse  parser
	lines  *layout.Decision
	finder *finder
	idle   atomic.Bool // lines are parsed only
}

// foundArray is an array of a line, as known and recording of the line's recording.
type foundArray struct {
	known     int32
	recording recording
}

func newScan(ix *Index, cfg Config) *scan {
	return &scan{
		cfg: cfg, dir: ix.Dir, name: ix.List, parse: parserOf(ix.Dir, &ix.layout.Layout, cfg.Split, cfg.Columns),
		lines: ix.layout, finder: newFinder(ix.recordings),
	}
}

// run reads a list and calls each for its blocks, in order. Only some blocks are in memory at a time.
func (s *scan) run(ctx context.Context, list io.Reader, each func(*block)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	work, order := make(chan *block), make(chan *block, 2*s.cfg.Workers)
	wg.Go(func() {
		defer close(order)
		defer close(work)
		for b, err := range blocks(s.name, list, s.lines.Split(), s.lines.NameLine) {
			for _, to := range []chan *block{work, order} {
				select {
				case to <- b:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				cancel(err)
			}
		}
	})
	for range s.cfg.Workers {
		wg.Go(func() {
			for b := range work {
				if err := s.block(ctx, b); err != nil {
					cancel(err)
				}
				close(b.done)
			}
		})
	}
	for b := range order {
		<-b.done
		if ctx.Err() != nil {
			break
		}
		each(b)
		b.release()
	}
	return context.Cause(ctx)
}

// block reads the lines of a block, until ctx ends.
func (s *scan) block(ctx context.Context, b *block) error {
	b.rows = grow(b.rows, len(b.ends)) // of zero values
	for i := range b.rows {
		if ctx.Err() != nil {
			break
		}
		row := &b.rows[i]
		row.entry, row.refused = parseIn(b, i, s.parse)
		row.path = s.audioPath(row.audio)
		if row.skip || row.refused != nil || row.reason != "" || s.idle.Load() {
			continue
		}
		if err := s.row(b, row); hostTrouble(err) != nil {
			return err
		} else if err != nil {
			row.reason = reasonOf(err)
		}
	}
	return nil
}

// audioPath returns the first path at which to look for the recording (see statAudio), or "" if the line has none.
// Lists may name any file (docs/data.md).
func (s *scan) audioPath(audio string) string {
	path := filepath.FromSlash(audio)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.dir, path)
}

// row completes a row. The error is the reason why it cannot be used.
func (s *scan) row(b *block, row *scannedRow) error {
	f := s.finder.find(row.path, row.any)
	row.path, row.known, row.recording = f.path, f.place, f.recording
	if errors.Is(f.err, fs.ErrNotExist) {
		if row.any {
			return fmt.Errorf("there is no %s, %s or %s%s", row.audio, strings.Join(endings[:len(endings)-1], ", "),
				endings[len(endings)-1], s.finder.nearby(row))
		}
		return fmt.Errorf("there is no %s%s", row.audio, notPath(row.audio))
	}
	if f.err != nil {
		return f.err
	}
	if err := s.cut(row); err != nil {
		return err
	}
	if err := s.normalize(row); err != nil {
		return err
	}
	if err := s.encode(b, row); err != nil {
		return err
	}
	return s.columns(row)
}

// columns finds the arrays of a line and checks the lengths of its columns.
func (s *scan) columns(row *scannedRow) error {
	for i := range s.cfg.Columns.list() {
		c := &s.cfg.Columns.all[i]
		if c.spec.Origin != manifest.OriginFile {
			continue
		}
		place, r, err := s.findArray(c, &row.values[i])
		if err != nil {
			return fmt.Errorf("%s: %w", c.spec.Column, err)
		}
		row.arrays = append(row.arrays, foundArray{place, r})
	}
	return s.cfg.Columns.checkLengths(row.values, row.tokens, row.samples)
}

// cut finds the part of the recording that is the clip.
func (s *scan) cut(row *scannedRow) (err error) {
	frames, rate := int(row.recording.frames), int(row.recording.rate)
	if frames == 0 {
		return errors.New("the audio has no samples")
	}
	if row.offset, row.frames, err = row.part.frames(frames, rate); err != nil {
		return err
	}
	row.samples = audio.Samples(row.frames, rate, s.cfg.SampleRate)
	if row.samples < s.cfg.MinSamples {
		return fmt.Errorf("the clip has %d samples at %d Hz, fewer than the %d of one window of the features",
			row.samples, s.cfg.SampleRate, s.cfg.MinSamples)
	}
	return nil
}

// normalize applies the rules of the run to a text.
func (s *scan) normalize(row *scannedRow) error {
	text := s.cfg.Normalize.Text(row.text, row.language)
	row.text, row.normalized = text, text != row.text
	if text == "" {
		return errors.New("the text is empty")
	}
	return nil
}

func (s *scan) encode(b *block, row *scannedRow) error {
	if s.cfg.Tokenizer == nil {
		return nil
	}
	if n := utf8.RuneCountInString(row.text); n > maxText {
		return fmt.Errorf("the text has %d characters, more than %d", n, maxText)
	}
	before, err := s.cfg.Tokenizer.prefix(s.cfg.Prefix, cmp.Or(row.language, s.cfg.Language))
	if err != nil {
		return err
	}
	start := len(b.fields)
	for _, id := range before {
		b.fields = appendInt(b.fields, int64(id))
	}
	for w := range s.cfg.Tokenizer.encode(row.text) {
		b.fields = append(b.fields, w.fields...)
		row.tokens += len(w.ids)
		row.unknown = append(row.unknown, w.unknown...)
	}
	row.fields = b.fields[start:]
	if row.tokens == 0 {
		return errors.New("the text has no tokens")
	}
	row.tokens += len(before)
	return nil
}

// nearby says that the id of a line names a file with its ending, or that there is one in another format, if so.
func (f *finder) nearby(row *scannedRow) string {
	named := strings.TrimSuffix(row.path, ".wav")
	if ending := strings.ToLower(filepath.Ext(named)); ending == ".wav" || slices.Contains(endings, ending) {
		if _, err := f.folders.Stat(named); err == nil {
			return " (leave out the ending of the id: " + strings.TrimSuffix(row.audio, ".wav") + " is there)"
		}
	}
	for _, ending := range unread {
		if _, err := f.folders.Stat(named + ending); err == nil {
			return "; " + audio.Convert(named+ending)
		}
	}
	return ""
}

// unread are the usual endings of formats that are not read.
var unread = []string{".m4a", ".aac", ".mp4", ".webm", ".wma", ".aiff", ".aif"}

// endings are those of the recordings of metadata.csv other than .wav, in the order of search. The content decides how
// a file is read.
var endings = []string{".flac", ".ogg", ".opus", ".mp3", ".oga"}

// statAudio finds an audio file: the path, or, if it does not exist and any is set, the first file of the same name
// with another ending, in small or capital letters. Then it looks for the name in other Unicode forms: some systems
// store "ö" as one character, some as two, and copies of a data set mix them. It opens no file. in may be nil.
func statAudio(path string, any bool, in *folders) (string, fs.FileInfo, error) {
	info, err := files.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return path, info, err
	}
	for _, same := range forms(path) {
		names := []string{same}
		if stem, ok := stemOf(same); ok && any {
			for _, ending := range append([]string{".wav"}, endings...) {
				names = append(names, stem+ending)
			}
			for _, ending := range append([]string{".wav"}, endings...) {
				names = append(names, stem+strings.ToUpper(ending))
			}
		}
		for _, name := range names {
			if name == path {
				continue
			}
			if info, err := in.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				return name, info, err
			}
		}
	}
	return path, info, err
}

// stemOf cuts the ending of a recording off.
func stemOf(path string) (string, bool) {
	if !layout.HasEnding(path) {
		return path, false
	}
	return strings.TrimSuffix(path, filepath.Ext(path)), true
}

// forms returns a path, and the others that it is in Unicode's forms NFC and NFD, with its folder as it is or in the
// same form.
func forms(path string) []string {
	all := []string{path}
	dir, base := filepath.Split(path)
	for _, form := range []norm.Form{norm.NFC, norm.NFD} {
		for _, other := range []string{dir + form.String(base), form.String(path)} {
			if !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// notPath says why what a list names is no path, or nothing. The path has been cleaned: file:///a is file:/a.
func notPath(audio string) string {
	scheme, _, found := strings.Cut(audio, ":/")
	switch {
	case found && len(scheme) > 1 && !strings.Contains(scheme, "/"):
		return " (a path is needed, not a URL)"
	case strings.HasPrefix(audio, "~"):
		return " (only a shell replaces ~ by the home folder: write it in full)"
	case found || strings.Contains(audio, `\`):
		return " (a path of this system is needed, with / between folders)"
	}
	return ""
}

func readHeader(path string, state half) (recording, error) {
	f, err := openAudio(path)
	if err != nil {
		return recording{}, err
	}
	defer f.Close()
	return recording{
		state: state, frames: int64(f.Frames), rate: int32(f.SampleRate), channels: int16(f.Channels),
		remarks: uint16(f.Remarks),
	}, nil
}

// hostTrouble returns the errors that are not caused by a file: they stop the run instead of rejecting rows.
func hostTrouble(err error) error {
	if files.OfMachine(err) {
		return err
	}
	return nil
}
