package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// builder makes the rows of an index from its lines, in file order.
type builder struct {
	ix       *Index
	cfg      Config
	ids      ids
	unknown  map[rune]int   // places in Index.Unknown
	ignored  map[string]int // places in Index.Ignored
	speakers numbers
	langs    numbers
	hash     hash.Hash // Index.Hash
	field    []byte
}

func newBuilder(ix *Index, cfg Config, lines int) *builder {
	ix.Rows = make([]Row, 0, lines)
	b := &builder{
		ix: ix, cfg: cfg,
		ids:     ids{name: ix.List, place: ix.Place, lines: make(map[string]int, lines), most: cfg.Refusals},
		unknown: map[rune]int{}, ignored: map[string]int{}, speakers: newNumbers(cfg.Speakers),
		langs: newNumbers(cfg.Languages), hash: sha256.New(),
	}
	b.hash.Write(appendInt(nil, int64(ix.SampleRate)))
	return b
}

// add adds a line. It keeps none of its memory but the strings.
func (b *builder) add(s *scannedRow) {
	// An id is usually a part of the path. Then it shares its memory.
	if at := strings.Index(s.path, s.id); at >= 0 {
		s.id = s.path[at : at+len(s.id)]
	}
	if s.skip {
		return
	}
	b.ids.add(&s.entry, s.refused)
	b.ignore(&s.entry)
	ix := b.ix
	if s.reason != "" {
		ix.Rejected = append(ix.Rejected, Rejected{Line: s.line, ID: s.id, Path: s.path, Reason: s.reason})
		return
	}
	ix.recordings.add(s.known, &s.recording)
	for i := range s.arrays {
		ix.recordings.add(s.arrays[i].known, &s.arrays[i].recording)
	}
	ix.Rows = append(ix.Rows, Row{
		ID: s.id, Path: s.path, Line: s.line,
		Offset: s.offset, Frames: s.frames, FileRate: int(s.recording.rate), FileChannels: int(s.recording.channels),
		Samples: s.samples,
		Remarks: Remarks(s.recording.remarks),
		Text:    s.text, Tokens: s.tokens,
		LanguageID: b.langs.number(cmp.Or(s.language, b.cfg.Language)), SpeakerID: b.speakers.number(s.speaker),
		Values: s.values,
	})
	if s.language != "" {
		ix.NamesLanguages = true
	}
	if s.normalized {
		ix.Normalized++
	}
	b.identify(&ix.Rows[len(ix.Rows)-1], s.fields)
	for _, c := range s.unknown {
		at, ok := b.unknown[c]
		if !ok {
			at = len(ix.Unknown)
			b.unknown[c] = at
			ix.Unknown = append(ix.Unknown,
				UnknownChar{Char: c, Place: ix.Place(s.line), Instead: b.cfg.Tokenizer.instead(c)})
		}
		ix.Unknown[at].Count++
	}
}

// identify adds a row to the index's hash. tokens are the ids as fields.
func (b *builder) identify(r *Row, tokens []byte) {
	f := appendField(b.field[:0], r.ID)
	f = appendField(f, r.Text)
	f = appendField(f, b.langs.names[r.LanguageID])
	f = appendField(f, b.speakers.names[r.SpeakerID])
	for _, n := range [...]int{r.Offset, r.Frames, r.FileRate, r.FileChannels, r.Tokens} {
		f = appendInt(f, int64(n))
	}
	for i, v := range r.Values {
		f = appendInt(f, int64(v.Length))
		if b.cfg.Columns.all[i].spec.Origin == manifest.OriginColumn {
			f = appendField(f, v.data)
		}
	}
	b.hash.Write(f)
	b.hash.Write(tokens)
	b.field = f
}

// end completes the index after the last line.
func (b *builder) end() {
	b.ix.Speakers, b.ix.Languages = b.speakers.names, b.langs.names
	b.ix.recordings.known, b.ix.recordings.added = nil, nil
	b.ix.hash = hex.EncodeToString(b.hash.Sum(nil))
}

// numbers numbers names in the order of their first occurrence.
type numbers struct {
	names []string
	ids   map[string]int32
}

func newNumbers(names []string) numbers {
	n := numbers{ids: map[string]int32{}}
	for _, name := range names {
		n.number(name)
	}
	return n
}

func (n *numbers) number(name string) int32 {
	id, ok := n.ids[name]
	if !ok {
		id = int32(len(n.names))
		n.names = append(n.names, name)
		n.ids[name] = id
	}
	return id
}
