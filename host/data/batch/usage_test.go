package batch

import (
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestUsed: each reason has its own limit, in whatever order the list has the clips.
func TestUsed(t *testing.T) {
	ix := &dataset.Index{SampleRate: 100, Rejected: make([]dataset.Rejected, 3), Rows: []dataset.Row{
		{Samples: 250, Tokens: 5}, {Samples: 100, Tokens: 5}, {Samples: 150, Tokens: 9}, {Samples: 200, Tokens: 8},
	}}
	plan, err := dataset.NewPlan(ix.Rows,
		dataset.PlanConfig{BatchSize: 1, Buckets: []manifest.Bucket{{"T_wav": 200, "T_text": 8}}})
	if err != nil {
		t.Fatal(err)
	}
	want := report.DataList{Clips: 2, Seconds: 3, LeftOut: []report.LeftOut{
		{Reason: "longer than 2.00 s", File: "excluded.jsonl", Clips: 1, Seconds: 2.5},
		{Reason: "text of more than 8 tokens", File: "excluded.jsonl", Clips: 1, Seconds: 1.5},
		{Reason: "cannot be used", File: "quarantine.jsonl", Clips: 3},
	}}
	if got := usedOf(ix, plan); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
