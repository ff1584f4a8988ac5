package report

import "testing"

func TestFeatureCacheLines(t *testing.T) {
	var table table
	table.features(nil)
	table.features(&FeatureCache{})
	table.features(&FeatureCache{
		Folder: "/data/features", LimitBytes: 16 << 30, Bytes: 3 << 30, Hits: 750, Misses: 250, HitRatio: 0.75,
		Stages: []CachedStage{
			{Name: "target", Hits: 700, Misses: 200, Damaged: 2},
			{
				Name: "reference", Hits: 50, Misses: 50,
				TrainingUncached: "reference_waveform is drawn anew for each epoch",
			},
		},
	})
	const want = `  feature cache   not used by any stage
  feature cache   75 % of 1,000 rows, 3.0 GiB of 16.0 GiB in /data/features
                  target 78 %, reference 50 %
                  not for training: reference (reference_waveform is drawn anew for each epoch)
                  2 damaged files replaced
`
	if got := table.b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
