package plan

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestBucketsOfAnotherBatch: --buckets auto depends on the batch size, so the search for a batch that fits must try the
// buckets that a run with that batch would have.
func TestBucketsOfAnotherBatch(t *testing.T) {
	b := &manifest.Bundle{
		Buckets:  []manifest.Bucket{{"T_text": 20, "T_wav": 100, "T_mel": 11, "T_ref": 70}},
		Dynamic:  manifest.Bucket{"T_text": 50, "T_wav": 400},
		Features: manifest.Features{SampleRate: 100, HopLength: 10, Center: true},
	}
	var rows []dataset.Row
	for n := range 40 {
		rows = append(rows, dataset.Row{ID: fmt.Sprint(n), Samples: 10 * (1 + n%10), Tokens: 5})
	}
	for _, perBatch := range []bool{true, false} {
		p := &Plan{
			Config: &config.Config{BatchSize: 64}, World: world.World{Size: 1}, Bundle: &ortgraphs.Bundle{Manifest: b},
		}
		p.Stages.Resolved = &catalog.Resolved{MaxGrowth: 1}
		p.Data.Train = &batch.Split{Index: &dataset.Index{Rows: rows}}
		var err error
		if p.Buckets.Sizes, _, err = computeBuckets(p, 64, nil); err != nil {
			t.Fatal(err)
		}
		p.Buckets.perBatch = perBatch
		for _, size := range []int{64, 2} {
			slots, err := p.SlotsFor(size)
			if err != nil {
				t.Fatal(err)
			}
			if many := len(slots.Layouts) > 1; many != (perBatch && size == 2) {
				t.Errorf("batches of %d rows, per batch %t: %d buckets", size, perBatch, len(slots.Layouts))
			}
		}
	}
}

// TestSizesText: a checkpoint holds what makes the buckets again, and those of another --buckets are not taken.
func TestSizesText(t *testing.T) {
	b := &manifest.Bundle{
		Buckets:  []manifest.Bucket{{"T_text": 20, "T_wav": 100, "T_mel": 11, "T_ref": 70}},
		Dynamic:  manifest.Bucket{"T_text": 50, "T_wav": 400},
		Features: manifest.Features{SampleRate: 100, HopLength: 10, Center: true},
	}
	sizes := []manifest.Bucket{b.Fit(manifest.Bucket{"T_wav": 60, "T_text": 9}), b.Fit(
		manifest.Bucket{"T_wav": 400, "T_text": 50})}
	text := "auto=" + sizesText(sizes, b)
	if text != "auto=60/9 400/50" {
		t.Errorf("got %q", text)
	}
	if got, ok, err := parseSizes(text, "auto=", b); !ok || err != nil || !reflect.DeepEqual(got, sizes) {
		t.Errorf("%v, %t, %v", got, ok, err)
	}
	for _, other := range []string{"", "auto:8=60/9", "auto=", "auto=x", "auto=60", "auto=410/9"} {
		if got, ok, _ := parseSizes(other, "auto=", b); ok {
			t.Errorf("%q gave %v", other, got)
		}
	}
	b.Dynamic["T_phone"], b.Buckets[0]["T_phone"] = 30, 8
	sizes = []manifest.Bucket{b.Fit(manifest.Bucket{"T_wav": 60, "T_text": 9, "T_phone": 4})}
	if text = "auto=" + sizesText(sizes, b); text != "auto=60/9/4" {
		t.Errorf("got %q", text)
	}
	if got, ok, err := parseSizes(text, "auto=", b); !ok || err != nil || !reflect.DeepEqual(got, sizes) {
		t.Errorf("%v, %t, %v", got, ok, err)
	}
}
