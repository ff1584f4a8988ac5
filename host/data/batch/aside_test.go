package batch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/choice"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
)

const asidePad = -7.0

// stretch is an augmentation that changes the lengths of rows, with an input that it only reads.
func stretch(name string) catalog.Instance {
	ports := map[string]string{"x": "x", "n": "n"}
	x := manifest.TensorSpec{Name: "x", DType: manifest.F32, Lengths: "n"}
	n := manifest.TensorSpec{Name: "n", DType: manifest.I32}
	return catalog.Instance{
		Name: name, Inputs: map[string]string{"x": "x", "n": "n", "code": "code"}, Outputs: ports,
		Stage: manifest.Stage{
			Name: "stretch", Kind: manifest.Augment, Outputs: []manifest.TensorSpec{x, n},
			Inputs: []manifest.TensorSpec{x, n, {Name: "code", DType: manifest.F32}},
		},
	}
}

// stretched is what the stage makes of a row: a sample more or less, and other values, by the key of the row.
func stretched(row []float32, code float32, key []byte) []float32 {
	n := len(row) - 1 + int(key[0]%3)
	out := make([]float32, n)
	for i := range out {
		out[i] = row[i%len(row)]/2 + float32(key[1+i%8])/256 + code
	}
	return out
}

// stretcher is a plugin with the stage stretch. It treats a row without a clip as the protocol says.
type stretcher struct {
	fakePool
	*asideBench
	calls  int
	spoils func(slot []byte) // after the work
}

func (p *stretcher) Call(_ context.Context, req supervise.Request) (supervise.Result, error) {
	p.calls++
	l := &p.common.layouts[req.Bucket]
	slot := p.common.ring.Slot(req.Slot)
	for row, id := range req.ClipIDs {
		before := p.row(req.Slot, req.Bucket, row)
		code := p.code(req.Slot, req.Bucket, row)
		if id == "" {
			all := p.view(l, slot, "x", row)
			if len(before) > 0 || code != 0 || slices.ContainsFunc(all, func(v float32) bool { return v != asidePad }) {
				return supervise.Result{}, fmt.Errorf("row %d is not empty: %v, code %v", row, all, code)
			}
			p.set(req.Slot, req.Bucket, row, nil, 3) // not the padding: nobody may see it
			p.set(req.Slot, req.Bucket, row, nil, asidePad)
			continue
		}
		after := stretched(before, code, req.RowKeys[row*stage.KeySize:][:stage.KeySize])
		p.set(req.Slot, req.Bucket, row, after, asidePad)
	}
	if p.spoils != nil {
		p.spoils(slot)
	}
	return supervise.Result{}, nil
}

// asideBench sends batches through augmentations whose rows are chosen.
type asideBench struct {
	testing.TB
	common  *common
	plugin  *stretcher
	runners []*stageRunner
	clips   []dataset.Row
}

func newAsideBench(t testing.TB, instances []catalog.Instance, rows int, verify bool, widths ...int) *asideBench {
	t.Helper()
	var layouts []ring.Layout
	for _, w := range widths {
		layouts = append(layouts, ring.NewLayout([]ring.Tensor{
			{Name: "x", DType: manifest.F32, Shape: []int{rows, w}, Pad: asidePad},
			{Name: "n", DType: manifest.I32, Shape: []int{rows}},
			{Name: "code", DType: manifest.F32, Shape: []int{rows}},
		}, nil))
	}
	memory, err := ring.Create(2, slices.MaxFunc(layouts, func(a, b ring.Layout) int { return a.Size - b.Size }).Size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	b := &asideBench{TB: t}
	for i := range 40 {
		b.clips = append(b.clips, dataset.Row{ID: fmt.Sprintf("clip%d", i)})
	}
	b.common = &common{
		seed: 5, ring: memory, layouts: layouts, guards: newGuards(memory, layouts),
		data: Data{Train: &Split{Index: &dataset.Index{Rows: b.clips}}},
	}
	b.common.watch(verify)
	b.plugin = &stretcher{asideBench: b}
	b.plugin.workers = 1
	for _, in := range instances {
		b.runners = append(b.runners,
			newStageRunner(b.common, b.plugin, "stretcher", in, nil, rows, slog.New(slog.DiscardHandler)))
	}
	return b
}

func (b *asideBench) view(l *ring.Layout, slot []byte, name string, row int) []float32 {
	t, _ := l.Find(name)
	var out []float32
	for raw := t.Row(slot, row); len(raw) > 0; raw = raw[4:] {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return out
}

func (b *asideBench) row(slot, bucket, row int) []float32 {
	l := &b.common.layouts[bucket]
	n := binary.LittleEndian.Uint32(l.View(b.common.ring.Slot(slot), "n")[4*row:])
	return b.view(l, b.common.ring.Slot(slot), "x", row)[:n]
}

func (b *asideBench) code(slot, bucket, row int) float32 {
	return b.view(&b.common.layouts[bucket], b.common.ring.Slot(slot), "code", row)[0]
}

func (b *asideBench) set(slot, bucket, row int, values []float32, pad float32) {
	l, memory := &b.common.layouts[bucket], b.common.ring.Slot(slot)
	x, _ := l.Find("x")
	binary.LittleEndian.PutUint32(l.View(memory, "n")[4*row:], uint32(len(values)))
	for i, raw := 0, x.Row(memory, row); len(raw) > 0; i, raw = i+1, raw[4:] {
		v := pad
		if i < len(values) {
			v = values[i]
		}
		binary.LittleEndian.PutUint32(raw, math.Float32bits(v))
	}
}

// clip is a row as it is decoded. Its padding is not that of the tensor, so that it shows if someone has written it.
func clip(of int32) (values []float32, code float32) {
	for i := range 10 + int(of)%5 {
		values = append(values, float32(of)/64+float32(i)/16)
	}
	return values, 1 + float32(of)/8
}

const oddPad = 11

// fill decodes a batch.
func (b *asideBench) fill(batch *pipeline.Batch) {
	c, l := b.common, &b.common.layouts[batch.Bucket]
	c.proof.decode(batch.Slot)
	c.guards.begin(batch)
	c.seals.begin(batch.Slot)
	for row, of := range batch.Rows {
		var values []float32
		var code float32
		pad := float32(asidePad)
		if of >= 0 {
			values, code = clip(of)
			pad = oddPad
		}
		b.set(batch.Slot, batch.Bucket, row, values, pad)
		binary.LittleEndian.PutUint32(l.View(c.ring.Slot(batch.Slot), "code")[4*row:], math.Float32bits(code))
	}
	c.proof.decoded(batch.Slot, batch.Bucket)
	c.seals.set(batch.Slot, l.Tensors)
}

// process sends a batch through all instances.
func (b *asideBench) process(batch *pipeline.Batch) error {
	b.fill(batch)
	for _, r := range b.runners {
		if rejected, _, err := r.Process(b.Context(), batch); err != nil || len(rejected) > 0 {
			return fmt.Errorf("%s: %v, %w", r.instance.Name, rejected, err)
		}
	}
	return b.common.intact(batch, b.common.layouts[batch.Bucket].Tensors, nil)
}

// want is what the instances make of a row of a batch, whatever else is in it.
func (b *asideBench) want(batch *pipeline.Batch, of int32) (values []float32, code float32, pad float32) {
	values, code = clip(of)
	pad = oddPad
	row := choice.Row{Seed: b.common.seed, Epoch: batch.Epoch, Step: batch.Step, ID: b.clips[of].ID}
	for _, r := range b.runners {
		if row.Gets(&r.instance) {
			key := dataset.RowKey(row.Seed, row.Epoch, row.ID, r.instance.Name)
			values, pad = stretched(values, code, key[:]), asidePad
		}
	}
	return values, code, pad
}

// check compares all rows of a batch, their padding included.
func (b *asideBench) check(batch *pipeline.Batch) {
	b.Helper()
	l := &b.common.layouts[batch.Bucket]
	for row, of := range batch.Rows {
		var want []float32
		var code float32
		pad := float32(asidePad)
		if of >= 0 {
			want, code, pad = b.want(batch, of)
		}
		n := len(want)
		all := b.view(l, b.common.ring.Slot(batch.Slot), "x", row)
		for len(want) < len(all) {
			want = append(want, pad)
		}
		if !slices.Equal(all, want) || len(b.row(batch.Slot, batch.Bucket, row)) != n ||
			b.code(batch.Slot, batch.Bucket, row) != code {
			b.Fatalf("row %d with clip %d of step %d:\n%v, want\n%v", row, of, batch.Step, all, want)
		}
	}
}

// drawnPipeline returns one of up to six augmentations, with the entries of a user's.
func drawnPipeline(r *rand.Rand) []catalog.Instance {
	p := func() *manifest.Probability {
		switch r.IntN(4) {
		case 0:
			return nil
		case 1:
			return &manifest.Probability{Points: [][2]float64{{2, 0}, {20, 1}}}
		}
		return &manifest.Probability{Points: [][2]float64{{0, r.Float64()}}}
	}
	var entries []manifest.StageInstance
	for left := 1 + r.IntN(6); left > 0; {
		e := manifest.StageInstance{Name: fmt.Sprint("e", left), P: p()}
		n := min(left, 1+r.IntN(4))
		var members []manifest.StageInstance
		for k := range n {
			members = append(members, manifest.StageInstance{Name: fmt.Sprint("m", left, k), P: p()})
		}
		switch r.IntN(3) {
		case 0:
			n = 1
		case 1:
			for k := range members {
				w := float64(1 + r.IntN(3))
				members[k].Weight = &w
			}
			e.OneOf = members
		case 2:
			low := r.IntN(n + 1)
			e.SomeOf, e.Count = members, &manifest.Count{Low: low, High: max(1, low+r.IntN(n-low+1))}
		}
		left -= n
		entries = append(entries, e)
	}
	if err := manifest.CheckPipeline(entries); err != nil {
		panic(err)
	}
	var all []catalog.Instance
	for _, s := range manifest.Steps(entries) {
		in := stretch(s.Name)
		in.P, in.Group, in.Member = s.P, s.Group, s.Member
		all = append(all, in)
	}
	return all
}

// TestChosenRows sends random batches through random pipelines: each row gets the bits that it gets alone, in any batch
// of any size, and a row that no stage was called for keeps its bits, its padding included.
func TestChosenRows(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		instances, verify := drawnPipeline(r), seed%2 == 1
		for _, rows := range []int{1, 3, 8} {
			b := newAsideBench(t, instances, rows, verify, 24, 40)
			for range 8 {
				batch := &pipeline.Batch{
					Slot: r.IntN(2), Bucket: r.IntN(2), Epoch: r.IntN(3), Step: int64(r.IntN(25)),
					Rows: make([]int32, rows),
				}
				for i := range batch.Rows {
					if batch.Rows[i] = int32(r.IntN(len(b.clips))); r.IntN(5) == 0 {
						batch.Rows[i] = -1
					}
				}
				if err := b.process(batch); err != nil {
					t.Fatalf("seed %d, %d rows: %v", seed, rows, err)
				}
				b.check(batch)
			}
		}
	}
}

func sometimes(p float64) catalog.Instance {
	in := stretch("clip")
	in.P = &manifest.Probability{Points: [][2]float64{{0, p}}}
	return in
}

// TestNoRowIsChosen: then the stage is not called.
func TestNoRowIsChosen(t *testing.T) {
	for p, calls := range map[float64]int{0: 0, 1: 1} {
		b := newAsideBench(t, []catalog.Instance{sometimes(p)}, 3, false, 24)
		batch := &pipeline.Batch{Rows: []int32{1, -1, 2}}
		if err := b.process(batch); err != nil {
			t.Fatal(err)
		}
		b.check(batch)
		want := chosen{given: 2 * int64(p), left: 2 * (1 - int64(p))}
		if got := b.runners[0].chosen; b.plugin.calls != calls || got != want {
			t.Errorf("p %g: %d calls, %+v, want %d, %+v", p, b.plugin.calls, got, calls, want)
		}
		if err := b.process(batch); err != nil || b.runners[0].chosen != want {
			t.Errorf("the batch that is built again counts: %+v, %v", b.runners[0].chosen, err)
		}
	}
}

// mixedBatch has rows that get the stage with p 0.5, and others.
func mixedBatch(t *testing.T, b *asideBench) (batch *pipeline.Batch, given, left int) {
	t.Helper()
	batch, given, left = &pipeline.Batch{Rows: []int32{0, 1, 2, 3, 4, 5}}, -1, -1
	for i, of := range batch.Rows {
		if (choice.Row{Seed: b.common.seed, ID: b.clips[of].ID}).Gets(&b.runners[0].instance) {
			given = i
		} else {
			left = i
		}
	}
	if given < 0 || left < 0 {
		t.Fatal("choose other clips")
	}
	return batch, given, left
}

// TestRowThatWasLeftOutIsNotJudged: what is wrong with it is not the fault of the stage. A wrong row that it has made
// is one.
func TestRowThatWasLeftOutIsNotJudged(t *testing.T) {
	b := newAsideBench(t, []catalog.Instance{sometimes(0.5)}, 6, false, 24)
	batch, given, left := mixedBatch(t, b)
	nan := func(row int) {
		x, _ := b.common.layouts[0].Find("x")
		binary.LittleEndian.PutUint32(x.Row(b.common.ring.Slot(0), row), math.Float32bits(float32(math.NaN())))
	}
	b.fill(batch)
	nan(left)
	b.common.seals.set(0, b.common.layouts[0].Tensors)
	if _, _, err := b.runners[0].Process(t.Context(), batch); err != nil || len(b.plugin.kicked) > 0 {
		t.Errorf("a row that was left out: %v, %q", err, b.plugin.kicked)
	}
	b.plugin.spoils = func([]byte) { nan(given) }
	if err := b.process(batch); !errors.Is(err, pipeline.ErrRebuild) {
		t.Errorf("a row that was given: %v", err)
	}
}

// TestRowThatWasLeftOutIsEmpty: a length that the stage gives it, or a reason to reject it, is a fault of the plugin.
func TestRowThatWasLeftOutIsEmpty(t *testing.T) {
	b := newAsideBench(t, []catalog.Instance{sometimes(0.5)}, 6, false, 24)
	batch, _, left := mixedBatch(t, b)
	b.plugin.spoils = func(slot []byte) { b.set(0, 0, left, []float32{1}, asidePad) }
	err := b.process(batch)
	want := fmt.Sprintf("the empty row %d got length 1 in n", left)
	if !errors.Is(err, pipeline.ErrRebuild) || len(b.plugin.kicked) != 1 ||
		!strings.Contains(b.plugin.kicked[0], want) {
		t.Errorf("%v, kicked %q, want %s", err, b.plugin.kicked, want)
	}
}

// TestProofOfChosenRows: under --verify-plugins, a write to an input is found in rows that were given and in rows that
// were left out, and so is one between the calls.
func TestProofOfChosenRows(t *testing.T) {
	for _, given := range []bool{true, false} {
		b := newAsideBench(t, []catalog.Instance{sometimes(0.5)}, 6, true, 24)
		batch, row, left := mixedBatch(t, b)
		if !given {
			row = left
		}
		code, _ := b.common.layouts[0].Find("code")
		b.plugin.spoils = func(slot []byte) { code.Row(slot, row)[0] ^= 1 }
		err := b.process(batch)
		want := fmt.Sprintf("it changed row %d of code in ring slot 0, but code is not an output of the stage", row)
		if !errors.Is(err, supervise.ErrViolation) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	b := newAsideBench(t, []catalog.Instance{sometimes(0.5)}, 6, true, 24)
	batch, _, left := mixedBatch(t, b)
	b.fill(batch)
	b.set(0, 0, left, []float32{1}, asidePad)
	_, _, err := b.runners[0].Process(t.Context(), batch)
	want := fmt.Sprintf("row %d of x in ring slot 0 was written to between two calls", left)
	if !errors.Is(err, supervise.ErrViolation) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestHalfPrecisionAside: a row whose padding cannot be written keeps its values in the call, and after it.
func TestHalfPrecisionAside(t *testing.T) {
	layout := ring.NewLayout([]ring.Tensor{
		{Name: "x", DType: manifest.F16, Shape: []int{2, 3}, Pad: 1}, {Name: "n", DType: manifest.I32, Shape: []int{2}},
		{Name: "code", DType: manifest.F32, Shape: []int{2}},
	}, nil)
	slot := bytes.Repeat([]byte{9}, layout.Size)
	tensors := blanks(stretch("clip"), &layout)
	var a aside
	a.hide(slot, tensors, []int{1})
	if x, n := tensors[0].Row(slot, 1), tensors[1].Row(slot, 1); x[0] != 9 || !bytes.Equal(n, make([]byte, 4)) {
		t.Errorf("x %v, n %v", x, n)
	}
	clear(slot)
	a.restore(slot, tensors)
	for _, tensor := range tensors {
		if tensor.Row(slot, 0)[0] != 0 || tensor.Row(slot, 1)[0] != 9 {
			t.Errorf("%s: %v", tensor.Name, tensor.In(slot))
		}
	}
}
