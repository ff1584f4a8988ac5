package trace

import (
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// BenchmarkSpan measures the cost of one span with the numbers of a batch.
func BenchmarkSpan(b *testing.B) {
	w, err := Create(b.TempDir() + "/timeline.json")
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	track := w.Track("group", "track", 0)
	for i := 0; b.Loop(); i++ {
		at := w.start.Add(time.Duration(i) * time.Microsecond)
		w.Span(track, "transfer", at, at.Add(500*time.Nanosecond),
			batch(&pipeline.Batch{Index: i}, Arg{"ring slot", 7}, Arg{"device slot", 1}, Arg{"bytes", 1 << 20}))
	}
}
