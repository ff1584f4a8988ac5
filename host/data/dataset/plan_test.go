package dataset

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

var update = flag.Bool("update", false, "rewrite testdata/plan_vectors.json; use only if docs/data-plan.md changes")

// vectors is the content of testdata/plan_vectors.json. 64-bit integers are strings.
type vectors struct {
	Generators []generatorVector `json:"generators"`
	Plans      []planVector      `json:"plans"`
	References []referenceVector `json:"references"`
	RowKeys    []rowKeyVector    `json:"row_keys"`
	GraphSeeds []graphSeedVector `json:"graph_seeds"`
}

type generatorVector struct {
	Seed  int64    `json:"seed"`
	Epoch int      `json:"epoch"`
	Next  []string `json:"next"`
}

type planVector struct {
	Rows      [][2]int          `json:"rows"` // tokens and samples
	Buckets   []manifest.Bucket `json:"buckets"`
	BatchSize int               `json:"batch_size"`
	MaxGrowth float64           `json:"max_growth"`
	Seed      int64             `json:"seed"`
	Epochs    []epochVector     `json:"epochs"`
}

type epochVector struct {
	Epoch   int           `json:"epoch"`
	Batches []batchVector `json:"batches"`
}

type batchVector struct {
	Bucket int     `json:"bucket"`
	Rows   []int32 `json:"rows"`
}

type referenceVector struct {
	IDs     []string `json:"ids"`
	Samples []int    `json:"samples"`
	Seed    int64    `json:"seed"`
	Epoch   int      `json:"epoch"`
	Row     int32    `json:"row"`
	TRef    int      `json:"t_ref"`
	Crop    [3]int   `json:"crop"` // row, offset, length
}

type rowKeyVector struct {
	Seed     int64  `json:"seed"`
	Epoch    int    `json:"epoch"`
	ID       string `json:"id"`
	Instance string `json:"instance"`
	Key      string `json:"key"`
}

type graphSeedVector struct {
	Seed      int64  `json:"seed"`
	Step      int64  `json:"step"`
	Micro     int    `json:"micro"`
	GraphSeed string `json:"graph_seed"`
}

// fill computes every result from the inputs of the same vector.
func (v *vectors) fill(t *testing.T) {
	for i := range v.Generators {
		g := &v.Generators[i]
		rng := orderGenerator(g.Seed, g.Epoch)
		g.Next = nil
		for range 130 { // across the generator's refills at 124 outputs
			g.Next = append(g.Next, strconv.FormatUint(rng.Uint64(), 10))
		}
	}
	for i := range v.Plans {
		c := &v.Plans[i]
		p, err := NewPlan(lengths(c.Rows),
			PlanConfig{Seed: c.Seed, BatchSize: c.BatchSize, Buckets: c.Buckets, MaxGrowth: c.MaxGrowth})
		if err != nil {
			t.Fatal(err)
		}
		for k := range c.Epochs {
			e := p.Epoch(c.Epochs[k].Epoch)
			c.Epochs[k].Batches = nil
			for b := range e.Len() {
				c.Epochs[k].Batches = append(c.Epochs[k].Batches, batchVector{e.Batch(b).Bucket, e.Batch(b).Rows})
			}
		}
	}
	for i := range v.References {
		c := &v.References[i]
		crop := NewReferences(speakers(c.IDs, c.Samples), c.Seed).Crop(c.Epoch, c.Row, c.TRef)
		c.Crop = [3]int{int(crop.Row), crop.Offset, crop.Length}
	}
	for i := range v.RowKeys {
		c := &v.RowKeys[i]
		key := RowKey(c.Seed, c.Epoch, c.ID, c.Instance)
		c.Key = hex.EncodeToString(key[:])
	}
	for i := range v.GraphSeeds {
		c := &v.GraphSeeds[i]
		c.GraphSeed = strconv.FormatInt(GraphSeed(c.Seed, c.Step, c.Micro), 10)
	}
}

func lengths(l [][2]int) []Row {
	rows := make([]Row, len(l))
	for i := range l {
		rows[i] = Row{ID: fmt.Sprint("row", i), Tokens: l[i][0], Samples: l[i][1]}
	}
	return rows
}

// someLengths returns n rows of various lengths: up to 60 tokens and 6000 samples, correlated as in speech.
func someLengths(n int) [][2]int {
	l := make([][2]int, n)
	for i := range l {
		samples := 500 + (i*i*37+i*211)%5500
		l[i] = [2]int{3 + samples/110 + i%5, samples}
	}
	return l
}

// speakers returns an index of rows without audio.
func speakers(ids []string, samples []int) *Index {
	ix := &Index{recordings: &recordings{added: map[half]int32{}}}
	b := newBuilder(ix, Config{}, len(ids))
	for i, id := range ids {
		b.add(&scannedRow{entry: entry{id: id, speaker: speakerOf(id)}, known: -1, samples: samples[i]})
	}
	b.end()
	return ix
}

var threeBuckets = []manifest.Bucket{
	{"T_text": 20, "T_wav": 1500}, {"T_text": 35, "T_wav": 3000}, {"T_text": 60, "T_wav": 5500},
}

const vectorFile = "testdata/plan_vectors.json"

func TestVectors(t *testing.T) {
	if *update {
		ids := []string{"A/1", "A/2", "B/1", "A/3", "solo", "B/2", "C/only"}
		samples := []int{900, 5000, 3000, 100, 2500, 3001, 4000}
		v := vectors{
			Generators: []generatorVector{{Seed: 0}, {Seed: -7, Epoch: 12}},
			Plans: []planVector{
				{
					Rows: someLengths(7), Buckets: threeBuckets[2:], BatchSize: 3, MaxGrowth: 1, Seed: 1,
					Epochs: []epochVector{{Epoch: 0}, {Epoch: 1}},
				},
				{
					Rows: someLengths(40), Buckets: threeBuckets, BatchSize: 4, MaxGrowth: 1.1, Seed: 42,
					Epochs: []epochVector{{Epoch: 0}, {Epoch: 3}},
				},
				// three windows
				{
					Rows: someLengths(300), Buckets: threeBuckets, BatchSize: 2, MaxGrowth: 1, Seed: -9007199254740993,
					Epochs: []epochVector{{Epoch: 100}},
				},
			},
			RowKeys: []rowKeyVector{
				{Instance: "noise"}, {Seed: 42, Epoch: 3, ID: "A/0001", Instance: "noise"},
				{Seed: -1, Epoch: 1, ID: "é/日", Instance: "spec_augment"},
			},
			GraphSeeds: []graphSeedVector{{}, {Seed: 42, Step: 1000000, Micro: 3}, {Seed: -1, Step: 7}},
		}
		for row := range int32(len(ids)) {
			v.References = append(v.References,
				referenceVector{IDs: ids, Samples: samples, Seed: 42, Epoch: int(row % 3), Row: row, TRef: 2000})
		}
		v.fill(t)
		writeVectors(t, v)
	}
	data, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var want, got vectors
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	got.fill(t)
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"generators", got.Generators, want.Generators}, {"plans", got.Plans, want.Plans},
		{"references", got.References, want.References}, {"row keys", got.RowKeys, want.RowKeys},
		{"graph seeds", got.GraphSeeds, want.GraphSeeds},
	} {
		if reflect.ValueOf(c.want).Len() == 0 {
			t.Errorf("no vectors of %s", c.name)
		}
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s differ from the vectors:\n got  %+v\n want %+v", c.name, c.got, c.want)
		}
	}
}

func writeVectors(t *testing.T, v vectors) {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	write(t, vectorFile, append(data, '\n'))
}

// Every fitting row occurs in every epoch exactly once, in its bucket. Only the last batch of each bucket has empty
// rows, after the others, and such batches come last.
func TestPlanProperties(t *testing.T) {
	for _, n := range []int{1, 2, 5, 16, 63, 257, 1500} {
		for _, size := range []int{1, 2, 3, 16} {
			for seed := range int64(3) {
				t.Run(fmt.Sprintf("%d rows by %d, seed %d", n, size, seed), func(t *testing.T) {
					rows := lengths(someLengths(n))
					cfg := PlanConfig{Seed: seed, BatchSize: size, Buckets: threeBuckets, MaxGrowth: 1.05}
					p, err := NewPlan(rows, cfg)
					if err != nil {
						t.Fatal(err)
					}
					eval, err := NewEvalPlan(rows, cfg)
					if err != nil {
						t.Fatal(err)
					}
					for _, epoch := range []int{0, 1, 7} {
						checkEpoch(t, p, p.Epoch(epoch), rows)
					}
					checkEpoch(t, eval, eval.Epoch(3), rows)
				})
			}
		}
	}
}

func checkEpoch(t *testing.T, p *Plan, e *Epoch, rows []Row) {
	t.Helper()
	if e.Len() != p.Batches() {
		t.Errorf("%d batches, but the plan has %d", e.Len(), p.Batches())
	}
	seen := make([]int, len(rows))
	for i := range e.Len() {
		b := e.Batch(i)
		if len(b.Rows) != p.cfg.BatchSize || b.Index != i || b.Rows[0] < 0 {
			t.Fatalf("batch %d: %+v", i, b)
		}
		for k, r := range b.Rows {
			if r < 0 {
				continue
			}
			if k > 0 && b.Rows[k-1] < 0 {
				t.Errorf("batch %d: row %d comes after an empty one", i, k)
			}
			seen[r]++
			if b.Bucket != p.Bucket(r) || b.Bucket != smallest(p.cfg, rows[r]) {
				t.Errorf("batch %d: row %d is in bucket %d", i, r, b.Bucket)
			}
		}
		if i == 0 || !slices.Contains(e.Batch(i-1).Rows, -1) {
			continue
		}
		if before := e.Batch(i - 1); before.Bucket >= b.Bucket {
			t.Errorf("batch %d has empty rows, and the next one is of bucket %d as well", i-1, b.Bucket)
		}
		if p.fixed == nil && !slices.Contains(b.Rows, -1) {
			t.Errorf("batch %d has empty rows, the next one has none", i-1)
		}
	}
	for r, n := range seen {
		if want := min(1, p.Bucket(int32(r))+1); n != want {
			t.Errorf("row %d of bucket %d occurs %d times", r, p.Bucket(int32(r)), n)
		}
	}
}

func smallest(cfg PlanConfig, r Row) int {
	for i, b := range cfg.Buckets {
		if r.Tokens <= b["T_text"] && math.Ceil(float64(r.Samples)*cfg.MaxGrowth) <= float64(b["T_wav"]) {
			return i
		}
	}
	return -1
}

func TestPlanIsPure(t *testing.T) {
	rows := lengths(someLengths(500))
	cfg := PlanConfig{Seed: 5, BatchSize: 8, Buckets: threeBuckets}
	plan := func(cfg PlanConfig) *Plan {
		p, err := NewPlan(rows, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := plan(cfg)
	var wg sync.WaitGroup
	for i := range 8 { // out of order and concurrently
		wg.Go(func() {
			if e := (i * 5) % 4; !slices.Equal(p.Epoch(e).rows, plan(cfg).Epoch(e).rows) {
				t.Errorf("epoch %d depends on the caller", e)
			}
		})
	}
	wg.Wait()
	if first, again := p.Epoch(2), p.Epoch(2); first != again {
		t.Error("an epoch is computed again")
	}
	if slices.Equal(p.Epoch(0).rows, p.Epoch(1).rows) {
		t.Error("two epochs have one order")
	}
	other := cfg
	other.Seed = 6
	if slices.Equal(p.Epoch(0).rows, plan(other).Epoch(0).rows) {
		t.Error("two seeds have one order")
	}
}

func TestEvalPlan(t *testing.T) {
	rows := lengths([][2]int{{5, 100}, {50, 100}, {5, 200}, {5, 90}, {90, 100}, {50, 5000}})
	p, err := NewEvalPlan(rows, PlanConfig{Seed: 3, BatchSize: 2, Buckets: threeBuckets})
	if err != nil {
		t.Fatal(err)
	}
	e := p.Epoch(9)
	var got []Batch
	for i := range e.Len() {
		got = append(got, e.Batch(i))
	}
	want := []Batch{{0, 0, 0, []int32{0, 2}}, {0, 1, 0, []int32{3, -1}}, {0, 2, 2, []int32{1, 5}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPlanExcludes(t *testing.T) {
	rows := lengths([][2]int{{5, 100}, {61, 100}, {5, 5501}, {5, 5300}})
	cfg := PlanConfig{BatchSize: 2, Buckets: threeBuckets, MaxGrowth: 1.05}
	p, err := NewPlan(rows, cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := []Excluded{
		{1, "T_text", "tokens", 60, "61 tokens, but the bucket holds 60"},
		{2, "T_wav", "samples", 5238, "5777 samples, but the bucket holds 5500"},
		{3, "T_wav", "samples", 5238, "5565 samples, but the bucket holds 5500"},
	}
	if !reflect.DeepEqual(p.Excluded(), want) {
		t.Errorf("got %v, want %v", p.Excluded(), want)
	}

	cfg.Limits = manifest.Bucket{"T_text": 60, "T_wav": 5600}
	if p, err = NewPlan(rows, cfg); err != nil || p.Excluded()[1].Limit != 5333 || p.Excluded()[2].Limit != 5238 {
		t.Errorf("%v: %v: a row beyond the limits is measured by them", p.Excluded(), err)
	}

	for _, c := range []struct {
		name string
		rows []Row
		cfg  PlanConfig
		err  string
	}{
		{"no rows", nil, cfg, "no usable row"},
		{"none fits", rows[1:], cfg, "none of 3 rows fits the largest bucket; row1 is too long: 61 tokens"},
		{"no batch", rows, PlanConfig{Buckets: threeBuckets}, "batch size 0"},
		{"no buckets", rows, PlanConfig{BatchSize: 1}, "no buckets"},
		{"growth", rows, PlanConfig{BatchSize: 1, Buckets: threeBuckets, MaxGrowth: 0.5}, "max growth 0.5"},
	} {
		_, err := NewPlan(c.rows, c.cfg)
		contains(t, err, c.err)
	}
	_, err = NewPlan(nil, cfg)
	if !errors.Is(err, ErrNoRows) {
		t.Errorf("%v is not ErrNoRows", err)
	}
}

func BenchmarkEpoch13000(b *testing.B) {
	p, err := NewPlan(lengths(someLengths(13000)), PlanConfig{BatchSize: 16, Buckets: threeBuckets})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.order(1)
	}
}
