package dataset

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

const (
	tText = 8
	tWav  = 50
	tRef  = 20
)

// tensors allocates the named tensors and fills them with invalid values.
func tensors(t testing.TB, rows int, values map[string]int, names ...string) []Tensor {
	t.Helper()
	out := make([]Tensor, len(names))
	for i, name := range names {
		spec, ok := Specs()[name]
		if !ok {
			t.Fatalf("no tensor %s", name)
		}
		shape, err := spec.Shape.Resolve(manifest.Bucket(values).Values(rows))
		if err != nil {
			t.Fatal(err)
		}
		n := 4
		for _, d := range shape {
			n *= d
		}
		out[i] = Tensor{Name: name, DType: spec.DType, Shape: shape, Data: bytes.Repeat([]byte{0xA5}, n)}
	}
	return out
}

var allNames = []string{
	"text_sequences", "text_lengths", "waveform", "waveform_lengths", "reference_waveform", "reference_lengths",
	"speaker_ids", "language_ids",
}

var sizes = map[string]int{"T_text": tText, "T_wav": tWav, "T_ref": tRef}

// four creates a data set of two speakers. Sample i of clip k is 1000*k + i.
func four(t testing.TB) *Index {
	dir := folder(t, "A/1|ab", "A/2|abc", "B/1|b", "B/2|ba!")
	clip(t, dir, "A/1", 22050, 1, ramp(0, 30))
	clip(t, dir, "A/2", 22050, 1, ramp(1000, 50))
	clip(t, dir, "B/1", 22050, 1, ramp(2000, 10))
	clip(t, dir, "B/2", 22050, 1, ramp(3000, 40))
	return open(t, Config{Dir: dir, SampleRate: 22050, Tokenizer: testTokenizer(t), Languages: []string{"de"}})
}

func fill(t testing.TB, f *Filler, b Batch, ts []Tensor) []BadRow {
	t.Helper()
	bad, err := f.Fill(b, ts)
	if err != nil {
		t.Fatal(err)
	}
	return bad
}

// samplesOf undoes the scaling.
func samplesOf(b []byte) []int {
	var out []int
	for _, v := range floats(b) {
		out = append(out, int(v*32768))
	}
	return out
}

func TestFill(t *testing.T) {
	ix := four(t)
	refs := NewReferences(ix, 1)
	f := NewFiller(ix, refs, nil)
	b := Batch{Epoch: 2, Rows: []int32{3, 0, -1}}
	ts := tensors(t, 3, sizes, allNames...)
	ts[0].Pad, ts[2].Pad, ts[6].Pad = 7, -0.5, -1
	if bad := fill(t, f, b, ts); len(bad) != 0 {
		t.Fatal(bad)
	}
	for i, want := range map[int][]int32{
		0: {3, 2, 31, 7, 7, 7, 7, 7, 2, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7},
		1: {3, 2, 0},
		3: {40, 30, 0},
		6: {1, 0, -1},
		7: {1, 1, 0},
	} {
		if got := ints(ts[i].Data); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", ts[i].Name, got, want)
		}
	}
	wave := samplesOf(ts[2].Data)
	for i, want := range []struct{ first, n int }{{3000, 40}, {0, 30}, {0, 0}} {
		for k, got := range wave[i*tWav : (i+1)*tWav] {
			if k < want.n && got != want.first+k || k >= want.n && got != -16384 {
				t.Fatalf("waveform[%d,%d] is %d", i, k, got)
			}
		}
	}
	ref, refLengths := samplesOf(ts[4].Data), ints(ts[5].Data)
	for i, row := range b.Rows[:2] {
		c := refs.Crop(2, row, tRef)
		if c.Row == row || int(refLengths[i]) != c.Length {
			t.Fatalf("row %d: crop %+v, length %d", row, c, refLengths[i])
		}
		for k, got := range ref[i*tRef : (i+1)*tRef] {
			if k < c.Length && got != 1000*int(c.Row)+c.Offset+k || k >= c.Length && got != 0 {
				t.Fatalf("reference_waveform[%d,%d] is %d, want a part of %+v", i, k, got, c)
			}
		}
	}
	if refLengths[2] != 0 || slices.ContainsFunc(ref[2*tRef:], func(v int) bool { return v != 0 }) {
		t.Error("the empty row has a reference")
	}
}

// Every element of the tensors is written. A used filler writes the same as a new one.
func TestFillIsPure(t *testing.T) {
	ix := four(t)
	refs := NewReferences(ix, 1)
	used := NewFiller(ix, refs, nil)
	for epoch := range 5 {
		for _, rows := range [][]int32{{0, 1}, {2, 3}, {1, -1}, {-1, -1}} {
			b := Batch{Epoch: epoch, Rows: rows}
			x, y := tensors(t, 2, sizes, allNames...), tensors(t, 2, sizes, allNames...)
			for i := range y {
				for k := range y[i].Data {
					y[i].Data[k] = 0x5A
				}
			}
			fill(t, used, b, x)
			fill(t, NewFiller(ix, refs, nil), b, y)
			for i := range x {
				if !bytes.Equal(x[i].Data, y[i].Data) {
					t.Errorf("epoch %d, rows %v: %s differs", epoch, rows, x[i].Name)
				}
			}
		}
	}
}

// Any number of workers may fill an epoch, in any order: every batch has the same bits.
func TestFillByManyWorkers(t *testing.T) {
	dir, err := Sample(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ix := open(t, Config{Dir: dir, SampleRate: 11025, Tokenizer: testTokenizer(t)})
	bucket := manifest.Bucket{"T_text": 48, "T_wav": 30000, "T_ref": 8000}
	p, err := NewPlan(ix.Rows, PlanConfig{BatchSize: 3, Buckets: []manifest.Bucket{bucket}})
	if err != nil {
		t.Fatal(err)
	}
	refs := NewReferences(ix, 0)
	batches := min(p.Batches(), 4)
	run := func(workers int) [][sha256.Size]byte {
		sums := make([][sha256.Size]byte, batches)
		var next atomic.Int64
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				f, ts := NewFiller(ix, refs, nil), tensors(t, 3, bucket, allNames...)
				for i := int(next.Add(1)) - 1; i < batches; i = int(next.Add(1)) - 1 {
					if _, err := f.Fill(p.Epoch(0).Batch(i), ts); err != nil {
						t.Error(err)
					}
					var all []byte
					for k := range ts {
						all = append(all, ts[k].Data...)
					}
					sums[i] = sha256.Sum256(all)
				}
			})
		}
		wg.Wait()
		return sums
	}
	if !slices.Equal(run(1), run(4)) {
		t.Error("the number of workers changes batches")
	}
}

func TestFillBadRow(t *testing.T) {
	ix := four(t)
	if err := os.Truncate(ix.Rows[1].Path, 60); err != nil {
		t.Fatal(err)
	}
	refs := NewReferences(ix, 1)
	empty := func(ts []Tensor, i int) bool {
		for k := range ts {
			row := ts[k].row(i)
			if slices.ContainsFunc(row, func(b byte) bool { return b != 0 }) {
				return false
			}
		}
		return true
	}
	for _, c := range []struct {
		name  string
		rows  []int32
		names []string
		known bool  // the row is already in quarantine
		place int   // BadRow.Position; -2 for none
		empty []int // rows that must be empty
		own   []int // rows that use a part of their own clip as reference
	}{
		{"the row itself", []int32{1, 3}, allNames, false, 0, []int{0}, nil},
		{"a reference", []int32{0, 3}, allNames, false, -1, nil, []int{0}},
		{"a reference, then the row itself", []int32{0, 1}, allNames, false, 1, []int{1}, []int{0}},
		{"the row itself, then a reference", []int32{1, 0}, allNames, false, 0, []int{0}, []int{1}},
		{"known", []int32{1, 0}, allNames, true, 0, []int{0}, []int{1}},
		{"no waveform", []int32{0, 1}, []string{"reference_waveform", "reference_lengths"}, false, 1, []int{1},
			[]int{0}},
		{"no audio at all", []int32{1, 0}, []string{"text_sequences", "text_lengths", "waveform_lengths"}, false, -2,
			nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := new(Quarantine)
			if c.known {
				q.Add(
					BadRow{Row: 1, ID: "A/2", Path: ix.Rows[1].Path, Reason: "declares 100 bytes, but the file has 16"})
			}
			ts := tensors(t, 2, sizes, c.names...)
			bad := fill(t, NewFiller(ix, refs, q), Batch{Rows: c.rows}, ts)
			if c.place == -2 {
				if len(bad) != 0 {
					t.Errorf("bad rows %v", bad)
				}
			} else if len(bad) != 1 || bad[0].Row != 1 || bad[0].ID != "A/2" || bad[0].Path != ix.Rows[1].Path ||
				bad[0].Position != c.place ||
				!strings.Contains(bad[0].Reason, "declares 100 bytes, but the file has 16") {
				t.Errorf("bad rows %+v", bad)
			}
			for i := range c.rows {
				if got := empty(ts, i); got != slices.Contains(c.empty, i) {
					t.Errorf("row %d: empty is %v", i, got)
				}
			}
			for k := range ts {
				if ts[k].Name != "reference_waveform" {
					continue
				}
				for _, i := range c.own {
					own := refs.Own(0, c.rows[i], tRef)
					if got := samplesOf(ts[k].row(i)); got[0] != 1000*int(own.Row)+own.Offset {
						t.Errorf("row %d: the reference starts with %d, want part %+v", i, got[0], own)
					}
				}
			}
		})
	}
}

func TestFillRefuses(t *testing.T) {
	ix := four(t)
	f := NewFiller(ix, NewReferences(ix, 1), nil)
	one := func(name string, change func(*Tensor)) []Tensor {
		ts := tensors(t, 1, sizes, name)
		change(&ts[0])
		return ts
	}
	for _, c := range []struct {
		name    string
		tensors []Tensor
		err     string
	}{
		{"unknown tensor", one("waveform", func(t *Tensor) { t.Name = "mel_spectrograms" }),
			`tensor "mel_spectrograms" is not one`},
		{"dtype", one("text_lengths", func(t *Tensor) { t.DType = manifest.I64 }),
			"text_lengths is i64, but the data set produces i32"},
		{"rank", one("waveform", func(t *Tensor) { t.Shape = []int{tWav} }), "waveform has the shape [50]"},
		{"rows", one("waveform", func(t *Tensor) { t.Shape = []int{2, tWav} }), "with 1 rows"},
		{"bytes", one("waveform", func(t *Tensor) { t.Data = t.Data[4:] }), "has 196 bytes, not 200"},
		{"too many tokens", tensors(t, 1, map[string]int{"T_text": 2}, "text_sequences"),
			"A/2 has 3 tokens, but the tensor holds 2"},
		{"too many samples", tensors(t, 1, map[string]int{"T_wav": 49}, "waveform"),
			"A/2 has 50 samples, but the tensor holds 49"},
		{"lengths of nothing", tensors(t, 1, sizes, "reference_lengths"), "without reference_waveform"},
	} {
		_, err := f.Fill(Batch{Epoch: 3, Index: 4, Rows: []int32{1}}, c.tensors)
		contains(t, err, c.err)
		contains(t, err, "batch 4 of epoch 3")
	}
}

func TestQuarantine(t *testing.T) {
	var q Quarantine
	if q.Has(1) || len(q.Rows()) != 0 {
		t.Error("the zero value is not empty")
	}
	if !q.Add(BadRow{Row: 5, Reason: "first"}) || !q.Add(BadRow{Row: 1}) || q.Add(BadRow{Row: 5, Reason: "second"}) {
		t.Error("Add does not report which rows are new")
	}
	if r := q.Rows(); len(r) != 2 || r[0].Row != 1 || r[1].Reason != "first" || !q.Has(5) || q.Has(2) {
		t.Errorf("rows %v", r)
	}
}

// The remaining allocations are those of opening files: os.Stat, os.Open and reading the header.
func BenchmarkFill(b *testing.B) {
	dir, err := Sample(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	ix := open(b, Config{Dir: dir, SampleRate: 22050, Tokenizer: testTokenizer(b)})
	bucket := map[string]int{"T_text": 48, "T_wav": 66048, "T_ref": 33024}
	p, err := NewPlan(ix.Rows, PlanConfig{BatchSize: 8, Buckets: []manifest.Bucket{bucket}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		names []string
	}{{"all", allNames}, {"text", allNames[:2]}} {
		b.Run(c.name, func(b *testing.B) {
			f := NewFiller(ix, NewReferences(ix, 1), new(Quarantine))
			ts := tensors(b, 8, bucket, c.names...)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				fill(b, f, p.Epoch(0).Batch(i%p.Batches()), ts)
				i++
			}
		})
	}
}

func TestFlaw(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		name    string
		samples []float32
		whole   bool
		want    string
	}{
		{"sound", []float32{0, 0.5}, true, ""},
		{"just above", []float32{0, -1.1e-4}, true, ""},
		{"all zero", []float32{0, 0}, true, "silent: no sample is above -80 dB of full scale"},
		{"three steps of 16 bits", []float32{3. / 32768, -3. / 32768}, true, "silent"},
		{"a pause", []float32{0, 0}, false, ""},
		{"NaN", []float32{0.5, nan}, true, "sample 1 of 2 is not a number"},
		{"infinity", []float32{inf, 0}, false, "sample 0 of 2 is not a number"},
	} {
		row := Row{Samples: len(c.samples), FileChannels: 1}
		if !c.whole {
			row.Samples++
		}
		contains(t, flaw(c.samples, &row), c.want)
	}
	contains(t, flaw([]float32{0}, &Row{Samples: 1, FileChannels: 2}),
		"the mean of its 2 channels is above -80 dB of full scale; channels of opposite phase cancel")
}

// A silent clip is left out by name. It is not used as a reference: the row uses a part of its own clip, whether the
// silent clip is known or not.
func TestFillSilence(t *testing.T) {
	dir := folder(t, "A/1|a", "A/2|b", "A/3|c")
	clip(t, dir, "A/1", 22050, 1, ramp(1000, 30))
	clip(t, dir, "A/2", 22050, 1, make([]int16, 10))
	half := append(make([]int16, 40), ramp(3000, 10)...) // parts of it may be silent, the whole clip is not
	clip(t, dir, "A/3", 22050, 1, half)
	ix := open(t, Config{Dir: dir, SampleRate: 22050, Tokenizer: testTokenizer(t)})
	refs := NewReferences(ix, 1)
	var known Quarantine
	known.Add(BadRow{Row: 1})
	for epoch := range 20 {
		c := refs.Crop(epoch, 0, tRef)
		ts := tensors(t, 1, sizes, allNames...)
		f := NewFiller(ix, refs, nil)
		bad := fill(t, f, Batch{Epoch: epoch, Rows: []int32{0}}, ts)
		used := f.References()[0]
		wave := make([]float32, used.Length)
		if err := NewDecoder(22050).Decode(wave, &ix.Rows[used.Row], used.Offset); err != nil || len(wave) == 0 ||
			!slices.Equal(floats(ts[4].Data)[:len(wave)], wave) || int(ints(ts[5].Data)[0]) != len(wave) {
			t.Errorf("epoch %d: the reference is not %+v (%v)", epoch, used, err)
		}
		want := ""
		if c.Row == 1 {
			want = "A/2 -1 silent: no sample is above -80 dB of full scale"
		}
		got := ""
		for _, b := range bad {
			got += fmt.Sprintf("%s %d %s", b.ID, b.Position, b.Reason)
		}
		if got != want {
			t.Errorf("epoch %d: bad rows %q, want %q", epoch, got, want)
		}
		if Silent(floats(ts[4].Data)) {
			t.Errorf("epoch %d: the reference is silent", epoch)
		}
		again := tensors(t, 1, sizes, allNames...)
		fill(t, NewFiller(ix, refs, &known), Batch{Epoch: epoch, Rows: []int32{0}}, again)
		if !bytes.Equal(ts[4].Data, again[4].Data) {
			t.Errorf("epoch %d: the reference depends on what is known", epoch)
		}
	}
	ts := tensors(t, 1, sizes, allNames...)
	f := NewFiller(ix, refs, nil)
	bad := fill(t, f, Batch{Rows: []int32{1}}, ts)
	if got := f.References(); len(got) != 1 || got[0].Row != -1 {
		t.Errorf("the silent row has a reference: %+v", got)
	}
	if len(bad) != 1 || bad[0].Position != 0 || ints(ts[3].Data)[0] != 0 {
		t.Errorf("the silent row: %+v, length %d", bad, ints(ts[3].Data)[0])
	}
}
