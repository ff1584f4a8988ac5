package feed

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// BenchmarkCall is the way of a call with 16 rows to the processes of a plugin, of which the first is the owner's and
// the second a guest's. The processes answer at once.
func BenchmarkCall(b *testing.B) {
	const rows = 16
	pool := &fakePool{call: func(context.Context, supervise.Request) (supervise.Result, error) {
		return supervise.Result{Busy: time.Millisecond}, nil
	}}
	_, _, plugins := machine(b, 2, pool)
	req := supervise.Request{RowKeys: make([]byte, rows*stage.KeySize)}
	for i := range rows {
		id := fmt.Sprintf("speaker/clip-%04d", i)
		req.ClipIDs = append(req.ClipIDs, id)
		req.Sources = append(req.Sources, &stagepb.Source{Clip: id, Start: 1000, End: 70000})
	}
	for rank, name := range []string{"owner", "guest"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := plugins[rank][0].Call(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
