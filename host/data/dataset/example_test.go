package dataset_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func Example() {
	cache, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(cache)

	dir, err := dataset.Sample(cache)
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := dataset.LoadTokenizer("testdata/characters.json")
	if err != nil {
		log.Fatal(err)
	}
	ix, err := dataset.Open(context.Background(),
		dataset.Config{Dir: dir, SampleRate: 22050, Tokenizer: tokenizer, CacheDir: cache})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ix.Rows), "rows of speakers", ix.Speakers)

	buckets := []manifest.Bucket{{"T_text": 48, "T_wav": 44032}, {"T_text": 72, "T_wav": 66048}}
	plan, err := dataset.NewPlan(ix.Rows, dataset.PlanConfig{Seed: 1, BatchSize: 8, Buckets: buckets})
	if err != nil {
		log.Fatal(err)
	}
	var quarantine dataset.Quarantine
	filler := dataset.NewFiller(ix, dataset.NewReferences(ix, 1), &quarantine)
	lengths := dataset.Tensor{Name: "waveform_lengths", DType: manifest.I32, Shape: []int{8}, Data: make([]byte, 4*8)}

	epoch := plan.Epoch(0)
	for i := range epoch.Len() {
		b := epoch.Batch(i)
		bad, err := filler.Fill(b, []dataset.Tensor{lengths})
		if err != nil {
			log.Fatal(err)
		}
		for _, row := range bad {
			quarantine.Add(row)
		}
		fmt.Println("batch", i, "of bucket", b.Bucket)
	}
	// Output:
	// 24 rows of speakers [A B]
	// batch 0 of bucket 0
	// batch 1 of bucket 0
	// batch 2 of bucket 0
	// batch 3 of bucket 1
}
