package together

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/ranks/launch"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/world"
)

// pair joins two ranks of this process.
func pair(t *testing.T) (all [2]*Ranks) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var joined sync.WaitGroup
	for rank := range all {
		joined.Go(func() {
			var err error
			if all[rank], err = Join(t.Context(), func(error) {}, &config.Config{RankTimeout: 30}, launch.Found{
				World: world.World{Rank: rank, Size: 2}, Address: address, Secret: "the secret of a test",
			}, io.Discard, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	joined.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// TestSettle: rank 0 waits for the notes of rows that other ranks have left out of a step, however late they come, and
// for none of its own. It waits for no rank that is missing.
func TestSettle(t *testing.T) {
	all := pair(t)
	lead, other := all[0], all[1]
	split := &batch.Split{Name: report.Train, Index: &dataset.Index{}}
	q, err := batch.OpenQuarantine("", batch.Data{Train: split}, -1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	lead.quarantine.Store(q)
	lead.Trained("own")
	lead.notes.step(2) // one of another rank, and the own one
	go func() {
		time.Sleep(200 * time.Millisecond)
		other.Trained("late")
	}()
	lead.Settle()
	if _, there := q.List()["late"]; !there {
		t.Error("rank 0 does not wait for the note of rank 1")
	}
	other.Trained("early")
	lead.notes.step(1)
	lead.Settle()
	lead.notes.step(0)
	lead.Settle()
	if got := q.List(); len(got) != 2 {
		t.Errorf("rank 0 has %v", got)
	}
	lead.notes.step(1)
	settled := make(chan struct{})
	go func() {
		lead.Settle()
		close(settled)
	}()
	if err := other.Close(context.DeadlineExceeded); err != nil {
		t.Error(err)
	}
	select {
	case <-settled:
	case <-time.After(10 * time.Second):
		t.Fatal("rank 0 waits for a rank that is gone")
	}
	lead.Close(lead.Err())
	(*Ranks)(nil).Settle()
}
