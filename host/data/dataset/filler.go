package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Filler writes the dataset tensors of batches. It reuses its buffers, so use one Filler per goroutine.
type Filler struct {
	ix         *Index
	refs       *References
	quarantine *Quarantine
	specs      map[string]manifest.TensorSpec
	decoder    *Decoder
	wave, ref  []float32
	bad        []BadRow
	known      []BadRow // in quarantine; not among bad, because it may still be tried as a reference
	wanted     wanted
	crops      []Crop   // of the last call, by row
	arrays     [][]byte // of a row, by column
}

// wanted holds the requested tensors of one call; nil means not requested.
type wanted struct {
	text, textLengths, wave, waveLengths, ref, refLengths, speakers, languages *Tensor
	// by column and counter of the index
	columns, counters []*Tensor
}

// NewFiller returns a filler for batches of an index. It leaves rows in the quarantine empty, like unreadable rows. The
// caller may add to the quarantine at any time. A nil quarantine is empty.
func NewFiller(ix *Index, refs *References, quarantine *Quarantine) *Filler {
	if quarantine == nil {
		quarantine = new(Quarantine)
	}
	f := &Filler{
		ix: ix, refs: refs, quarantine: quarantine, specs: ix.Columns.Tensors(), decoder: NewDecoder(ix.SampleRate),
	}
	if c := ix.Columns; c != nil {
		f.arrays = make([][]byte, len(c.all))
		f.wanted = wanted{columns: make([]*Tensor, len(c.all)), counters: make([]*Tensor, len(c.counters))}
	}
	return f
}

// Fill writes every element of each tensor, padding included. It reads audio only if a waveform is requested.
//
// A row is left empty and returned if its clip is unreadable, silent, in quarantine, or has samples that are not
// finite. An unreadable reference clip is returned too; its row uses a part of its own clip instead, also if the part
// of the reference is silent. The list is valid until the next call. An error means that the call was invalid, or that
// the machine is out of files or memory. The content of the tensors is then undefined.
func (f *Filler) Fill(b Batch, tensors []Tensor) ([]BadRow, error) {
	f.bad, f.known, f.crops = f.bad[:0], f.known[:0], f.crops[:0]
	for range b.Rows {
		f.crops = append(f.crops, Crop{Row: -1})
	}
	if err := f.want(tensors, len(b.Rows)); err != nil {
		return nil, fmt.Errorf("batch %d of epoch %d: %w", b.Index, b.Epoch, err)
	}
	for i, row := range b.Rows {
		if err := f.row(b.Epoch, i, row); err != nil {
			return nil, fmt.Errorf("batch %d of epoch %d: row %d: %w", b.Index, b.Epoch, i, err)
		}
	}
	f.bad = append(f.bad, f.known...)
	return f.bad, nil
}

// References returns for each row of the last Fill the part of a clip that its reference is. Row is -1 for a row that
// Fill looked for none for. The list is valid until the next Fill.
func (f *Filler) References() []Crop { return f.crops }

// want looks the tensors up by name.
func (f *Filler) want(tensors []Tensor, rows int) error {
	w := wanted{columns: f.wanted.columns, counters: f.wanted.counters}
	clear(w.columns)
	clear(w.counters)
	f.wanted = w
	for i := range tensors {
		t := &tensors[i]
		if err := t.check(f.specs[t.Name], rows); err != nil {
			return err
		}
		switch t.Name {
		case "text_sequences":
			f.wanted.text = t
		case "text_lengths":
			f.wanted.textLengths = t
		case "waveform":
			f.wanted.wave = t
		case "waveform_lengths":
			f.wanted.waveLengths = t
		case "reference_waveform":
			f.wanted.ref = t
		case "reference_lengths":
			f.wanted.refLengths = t
		case "speaker_ids":
			f.wanted.speakers = t
		case "language_ids":
			f.wanted.languages = t
		default:
			f.wantColumn(t)
		}
	}
	if f.wanted.refLengths != nil && f.wanted.ref == nil {
		return fmt.Errorf("reference_lengths is asked for without reference_waveform")
	}
	return nil
}

// wantColumn looks up a column, or the lengths of columns.
func (f *Filler) wantColumn(t *Tensor) {
	for i, c := range f.ix.Columns.all {
		if c.spec.Name == t.Name {
			f.wanted.columns[i] = t
		}
	}
	for i, k := range f.ix.Columns.counters {
		if k.name == t.Name {
			f.wanted.counters[i] = t
		}
	}
}

// row fills row i of the tensors. It starts with the files, because an unreadable row is empty in all tensors.
func (f *Filler) row(epoch, i int, row int32) error {
	if row < 0 || f.wasBad(row, i) {
		f.empty(i)
		return nil
	}
	if known, ok := f.quarantine.get(row); ok {
		known.Position = i
		f.known = append(f.known, known)
		f.empty(i)
		return nil
	}
	r, w := &f.ix.Rows[row], &f.wanted
	if w.text != nil && r.Tokens > w.text.width() {
		return fmt.Errorf("%s has %d tokens, but the tensor holds %d", r.ID, r.Tokens, w.text.width())
	}
	f.wave, f.ref = f.wave[:0], f.ref[:0]
	if w.wave != nil {
		if r.Samples > w.wave.width() {
			return fmt.Errorf("%s has %d samples, but the tensor holds %d", r.ID, r.Samples, w.wave.width())
		}
		f.wave = grow(f.wave, r.Samples)
		if ok, err := f.decode(f.wave, Crop{Row: row, Length: r.Samples}, i); !ok {
			f.empty(i)
			return err
		}
	}
	if w.ref != nil {
		if ok, err := f.reference(epoch, i, row); !ok {
			f.empty(i)
			return err
		}
	}
	if ok, err := f.readArrays(i, row); !ok {
		f.empty(i)
		return err
	}
	f.put(i, r)
	return nil
}

// reference fills f.ref. It returns false if even the row's own clip is unreadable. It also tries clips in quarantine:
// when a row gets there depends on the progress of other workers, but whether a clip is readable does not.
func (f *Filler) reference(epoch, i int, row int32) (bool, error) {
	width := f.wanted.ref.width()
	c := f.refs.Crop(epoch, row, width)
	f.crops[i] = c
	if c.Row != row && !f.wasBad(c.Row, -1) {
		f.ref = grow(f.ref, c.Length)
		if ok, err := f.decode(f.ref, c, -1); err != nil || ok && !Silent(f.ref) {
			return ok, err
		}
	}
	c = f.refs.Own(epoch, row, width)
	f.crops[i] = c
	f.ref = grow(f.ref, c.Length)
	if f.wanted.wave != nil {
		copy(f.ref, f.wave[c.Offset:])
		return true, nil
	}
	return f.decode(f.ref, c, i)
}

// reasonOf says why a clip cannot be read, and what to do. It omits the path, which is stored separately; a checkpoint
// contains the reasons.
func reasonOf(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Op + ": " + p.Err.Error()
	}
	if h := hint.Of(err); h != "" {
		return err.Error() + "; " + h
	}
	return err.Error()
}

// decode reads a part of a clip. An unusable clip is recorded as bad: the result is false, without an error.
func (f *Filler) decode(dst []float32, c Crop, position int) (bool, error) {
	r := &f.ix.Rows[c.Row]
	err := f.decoder.Decode(dst, r, c.Offset)
	if err == nil {
		err = flaw(dst, r)
	}
	if err == nil || hostTrouble(err) != nil {
		return err == nil, err
	}
	if position < 0 && f.quarantine.Has(c.Row) {
		return false, nil // already known
	}
	f.bad = append(f.bad, BadRow{Row: c.Row, ID: r.ID, Path: r.Path, Reason: reasonOf(err), Position: position})
	return false, nil
}

// silence is the largest peak of a silent clip, -80 dB of full scale: three steps of 16 bits. NoSound says so.
const (
	silence = 1e-4
	NoSound = "no sample is above -80 dB of full scale"
)

// Silent reports whether no sample is above -80 dB of full scale.
func Silent(samples []float32) bool {
	return !slices.ContainsFunc(samples, func(v float32) bool { return v > silence || v < -silence })
}

// flaw returns what is wrong with readable samples of a row. Silence counts only for a whole clip, because speech has
// pauses.
func flaw(samples []float32, r *Row) error {
	for i, v := range samples {
		if v-v != 0 { // NaN and infinities
			return fmt.Errorf("sample %d of %d is not a number", i, len(samples))
		}
	}
	switch {
	case len(samples) < r.Samples || !Silent(samples):
		return nil
	case r.FileChannels > 1:
		return fmt.Errorf("silent: no sample of the mean of its %d channels is above -80 dB of full scale; channels "+
			"of opposite phase cancel each other",
			r.FileChannels)
	}
	return errors.New("silent: " + NoSound)
}

// wasBad reports whether this call has already found the row unreadable, and records its place in the batch.
func (f *Filler) wasBad(row int32, position int) bool {
	for i := range f.bad {
		if f.bad[i].Row == row {
			f.bad[i].Position = max(f.bad[i].Position, position)
			return true
		}
	}
	return false
}

func (f *Filler) put(i int, r *Row) {
	w := &f.wanted
	if w.text != nil {
		w.text.putInts(i, f.ix.Tokens(r))
	}
	if w.textLengths != nil {
		w.textLengths.putInt(i, r.Tokens)
	}
	if w.wave != nil {
		w.wave.putFloats(i, f.wave)
	}
	if w.waveLengths != nil {
		w.waveLengths.putInt(i, r.Samples)
	}
	if w.ref != nil {
		w.ref.putFloats(i, f.ref)
	}
	if w.refLengths != nil {
		w.refLengths.putInt(i, len(f.ref))
	}
	if w.speakers != nil {
		w.speakers.putInt(i, int(r.SpeakerID))
	}
	if w.languages != nil {
		w.languages.putInt(i, int(r.LanguageID))
	}
	f.putColumns(i, r)
}

// empty pads row i of every tensor; lengths become 0.
func (f *Filler) empty(i int) {
	w := &f.wanted
	values, lengths := [...]*Tensor{w.text, w.wave, w.ref, w.speakers, w.languages},
		[...]*Tensor{w.textLengths, w.waveLengths, w.refLengths}
	for _, some := range [...][]*Tensor{values[:], w.columns} {
		for _, t := range some {
			if t != nil {
				t.pad(t.row(i))
			}
		}
	}
	for _, some := range [...][]*Tensor{lengths[:], w.counters} {
		for _, t := range some {
			if t != nil {
				t.putInt(i, 0)
			}
		}
	}
}
