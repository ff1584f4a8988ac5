package batch

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// pairs is a stage that writes the sums of pairs of samples, with the padding -1. Two of its ports read the samples.
var pairs = catalog.Instance{
	Name: "pairs", Inputs: map[string]string{"x": "wave", "again": "wave", "n": "samples"},
	Outputs: map[string]string{"y": "sums", "m": "steps"},
	Stage: manifest.Stage{
		Name: "pairs", Kind: manifest.Preprocess, Deterministic: true, Cacheable: true,
		Inputs: []manifest.TensorSpec{
			{Name: "x", DType: manifest.I32, Lengths: "n"}, {Name: "again", DType: manifest.I32, Lengths: "n"},
			{Name: "n", DType: manifest.I32},
		},
		Outputs: []manifest.TensorSpec{
			{Name: "y", DType: manifest.I32, Lengths: "m", MayBeZero: true}, {Name: "m", DType: manifest.I32},
		},
	},
}

const pairRows = 4

// pairBench runs the stage pairs in two buckets.
type pairBench struct {
	*testing.T
	common *common
	runner *stageRunner
	pool   *fakePool
	calls  int
}

func newPairBench(t *testing.T, dir string) *pairBench {
	t.Helper()
	var layouts []ring.Layout
	for _, width := range []int{8, 12} {
		layouts = append(layouts, ring.NewLayout([]ring.Tensor{
			{Name: "sums", DType: manifest.I32, Shape: []int{pairRows, width / 2}, Pad: -1},
			{Name: "steps", DType: manifest.I32, Shape: []int{pairRows}},
		}, []ring.Tensor{
			{Name: "wave", DType: manifest.I32, Shape: []int{pairRows, width}, Pad: -9},
			{Name: "samples", DType: manifest.I32, Shape: []int{pairRows}},
		}))
	}
	memory, err := ring.Create(1, layouts[1].Size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	ix := new(dataset.Index)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		ix.Rows = append(ix.Rows, dataset.Row{ID: id})
	}
	split := &Split{Index: ix}
	b := &pairBench{T: t, common: &common{
		ring: memory, layouts: layouts, guards: newGuards(memory, layouts), data: Data{Train: split, Val: split},
	}}
	cache, err := featurecache.Open(featurecache.Config{
		Dir: dir, Flag: "--feature-cache", Limit: 1 << 30, Failed: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cache.Close)
	features := &Features{cache: cache, identities: [][32]byte{{1}}}
	b.pool = &fakePool{}
	b.runner = newStageRunner(b.common, b.pool, "pairs", pairs, features.memos(b.common, []catalog.Instance{pairs})[0],
		pairRows, slog.New(slog.DiscardHandler))
	return b
}

// view returns a tensor as integers.
func (b *pairBench) view(bucket int, name string) []int32 {
	raw := b.common.layouts[bucket].View(b.common.ring.Slot(0), name)
	out := make([]int32, len(raw)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

func (b *pairBench) put(bucket int, name string, values []int32) {
	raw := b.common.layouts[bucket].View(b.common.ring.Slot(0), name)
	for i, v := range values {
		binary.LittleEndian.PutUint32(raw[4*i:], uint32(v))
	}
}

// run sends rows with clip n of n+1 samples through the stage, and checks all tensors. It returns the clips that the
// stage was called for.
func (b *pairBench) run(bucket int, rows ...int32) (called string) {
	b.Helper()
	width := []int{8, 12}[bucket]
	wave, samples := make([]int32, pairRows*width), make([]int32, pairRows)
	sums, steps := make([]int32, pairRows*width/2), make([]int32, pairRows)
	for i := range wave {
		wave[i] = -9
	}
	for i := range sums {
		sums[i] = -1
	}
	for i, clip := range rows {
		n := int(clip) + 1
		samples[i], steps[i] = int32(n), int32(n/2)
		for j := range n {
			wave[i*width+j] = int32(10*n + j)
		}
		for j := range n / 2 {
			sums[i*width/2+j] = wave[i*width+2*j] + wave[i*width+2*j+1]
		}
	}
	batch := &pipeline.Batch{Bucket: bucket, Rows: rows}
	b.common.guards.begin(batch)
	b.put(bucket, "wave", wave)
	b.put(bucket, "samples", samples)
	b.put(bucket, "sums", slices.Repeat([]int32{77}, len(sums))) // of an earlier batch
	b.put(bucket, "steps", slices.Repeat([]int32{3}, len(steps)))
	b.pool.call = func(int) (supervise.Result, error) {
		b.calls++
		called = strings.Join(slices.DeleteFunc(slices.Clone(b.pool.clips), func(id string) bool { return id == "" }),
			"")
		wave, samples := b.view(bucket, "wave"), b.view(bucket, "samples")
		for i, n := range samples {
			if (n > 0) != (b.pool.clips[i] != "") ||
				slices.ContainsFunc(wave[i*width+int(n):(i+1)*width], func(v int32) bool { return v != -9 }) {
				b.Errorf("row %d of clip %q has the length %d: %v", i, b.pool.clips[i], n, wave[i*width:(i+1)*width])
			}
			out, steps := slices.Repeat([]int32{-1}, width/2), b.view(bucket, "steps")
			for j := range n / 2 {
				out[j] = wave[i*width+2*int(j)] + wave[i*width+2*int(j)+1]
			}
			all := b.view(bucket, "sums")
			copy(all[i*width/2:], out)
			steps[i] = n / 2
			b.put(bucket, "sums", all)
			b.put(bucket, "steps", steps)
		}
		return supervise.Result{}, nil
	}
	b.runner.attempts[0].counted = 0 // it is another batch than the last one
	if rejected, _, err := b.runner.Process(b.Context(), batch); err != nil || len(rejected) > 0 {
		b.Fatal(rejected, err)
	}
	for name, want := range map[string][]int32{"wave": wave, "samples": samples, "sums": sums, "steps": steps} {
		if got := b.view(bucket, name); !slices.Equal(got, want) {
			b.Errorf("rows %v: %s\n%v, want\n%v", rows, name, got, want)
		}
	}
	return called
}

// TestMemo: a stage is called for rows that the cache does not have, in any place and bucket, and never for others. All
// tensors are as without a cache.
func TestMemo(t *testing.T) {
	dir := t.TempDir()
	b := newPairBench(t, dir)
	for _, c := range []struct {
		bucket int
		rows   []int32
		calls  string
	}{
		{0, []int32{0, 1, -1, 2}, "abc"},
		{0, []int32{0, 1, -1, 2}, ""},
		{1, []int32{-1, 2, 1, -1}, ""},   // another bucket, other places
		{1, []int32{4, 2, 3, -1}, "ed"},  // some
		{0, []int32{3, 3, 4, 0}, ""},     // a clip twice
		{0, []int32{-1, -1, -1, -1}, ""}, // no row
		{1, []int32{0, 1, 2, 3}, ""},     // all
	} {
		if got := b.run(c.bucket, c.rows...); got != c.calls {
			t.Errorf("rows %v of bucket %d: called for %q, want %q", c.rows, c.bucket, got, c.calls)
		}
	}
	if m := b.runner.memo; m.stored.Load() != 5 || m.misses.Load() != 5 || m.hits.Load() != 3+2+1+4+4 || b.calls != 2 {
		t.Errorf("%d stored, %d misses, %d hits, %d calls", m.stored.Load(), m.misses.Load(), m.hits.Load(), b.calls)
	}
	if got := newPairBench(t, dir).run(0, 0, 1, 2, 3); got != "" {
		t.Errorf("another run called for %q", got)
	}
	other := newPairBench(t, dir)
	other.runner.memo = (&Features{cache: other.runner.memo.cache, identities: [][32]byte{{2}}}).memos(other.common,
		[]catalog.Instance{pairs})[0]
	if got := other.run(0, 0, 1, 2, 3); got != "abcd" {
		t.Errorf("another version of the plugin was called for %q", got)
	}
}

// TestMemoCountsOnce: a batch that is built again, because a later stage has rejected a row of it, counts once.
func TestMemoCountsOnce(t *testing.T) {
	b := newPairBench(t, t.TempDir())
	b.run(0, 0, 1, 2, 3)
	again := &pipeline.Batch{Rows: []int32{0, 1, -1, 3}}
	b.common.guards.begin(again)
	if rejected, _, err := b.runner.Process(t.Context(), again); err != nil || len(rejected) > 0 {
		t.Fatal(rejected, err)
	}
	m := b.runner.memo
	stored, misses, hits := m.stored.Load(), m.misses.Load(), m.hits.Load()
	if stored != 4 || misses != 4 || hits != 0 {
		t.Errorf("%d stored, %d misses, %d hits of 4 rows", stored, misses, hits)
	}
}

// TestMemoKeepsNoFailure: rows of a result that was refused, or rejected in part, are computed again.
func TestMemoKeepsNoFailure(t *testing.T) {
	b := newPairBench(t, t.TempDir())
	batch := &pipeline.Batch{Rows: []int32{0, 1, 2, 3}}
	// the first has no lengths
	for _, result := range []supervise.Result{{}, {Bad: []supervise.BadRow{{Row: 1, Reason: "too short"}}}} {
		b.common.guards.begin(batch)
		b.pool.call = func(int) (supervise.Result, error) { return result, nil }
		rejected, _, err := b.runner.Process(context.Background(), batch)
		if err == nil && len(rejected) == 0 {
			t.Error("accepted")
		}
	}
	if got := b.run(0, 0, 1, 2, 3); got != "abcd" {
		t.Errorf("called for %q", got)
	}
}

// TestUncached follows the pipeline: what an augmentation changes and what is drawn is of no use to the cache.
func TestUncached(t *testing.T) {
	instance := func(name string, kind string, cacheable bool, in, out string) catalog.Instance {
		return catalog.Instance{
			Name: name, Inputs: map[string]string{"x": in}, Outputs: map[string]string{"y": out},
			Stage: manifest.Stage{
				Kind: kind, Cacheable: cacheable, Inputs: []manifest.TensorSpec{{Name: "x"}},
				Outputs: []manifest.TensorSpec{{Name: "y"}},
			},
		}
	}
	list := []catalog.Instance{
		instance("first", manifest.Preprocess, true, "waveform", "early"),
		instance("noise", manifest.Augment, false, "waveform", "waveform"),
		instance("target", manifest.Preprocess, true, "waveform", "mel"),
		instance("codes", manifest.Preprocess, true, "mel", "codes"),
		instance("second", manifest.Preprocess, true, "early", "late"),
		instance("reference", manifest.Preprocess, true, "reference_waveform", "reference_mel"),
		instance("stranger", manifest.Preprocess, false, "late", "strange"),
		instance("last", manifest.Preprocess, true, "strange", "end"),
	}
	const stranger = "plugin.json does not declare it cacheable"
	for _, c := range []struct {
		eval bool
		want []string
	}{
		{false, []string{
			"", "it is an augmentation", "waveform is made by noise: an augmentation",
			"mel is made by target: waveform is made by noise: an augmentation", "",
			"reference_waveform is drawn anew for each epoch", stranger, "strange is made by stranger: " + stranger,
		}},
		{true, []string{
			"", "evaluations skip it", "", "", "", "", stranger, "strange is made by stranger: " + stranger,
		}},
	} {
		if got := Uncached(list, c.eval); !slices.Equal(got, c.want) {
			t.Errorf("evaluation %v:\n%q, want\n%q", c.eval, got, c.want)
		}
	}
}
