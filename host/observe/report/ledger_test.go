package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	write := func(after int64, from, to int) {
		t.Helper()
		l, err := OpenLedger(path, after, nil)
		if err != nil {
			t.Fatal(err)
		}
		for step := from; step <= to; step++ {
			l.Batch(&pipeline.Batch{Step: int64(step) - 1, Epoch: 1, Index: 2 * step, Bucket: 2, Rows: []int32{0, -1}},
				func(row int32) string { return "ab"[row : row+1] })
			l.Batch(&pipeline.Batch{Step: int64(step) - 1, Epoch: 1, Index: 2*step + 1, Rows: []int32{1}},
				func(row int32) string { return "ab"[row : row+1] })
			if err := l.Take(events(&event.Step{Step: int64(step)})); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Sync(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	write(0, 1, 3)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"step":4,"ba`) // killed
	f.Close()
	write(1, 2, 2) // resumed from step 1
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"step":1,"batches":[{"epoch":1,"index":2,"bucket":2,"rows":["a",""]},{"epoch":1,"index":3,"bucket":0,"rows":["b"]}]}
{"step":2,"batches":[{"epoch":1,"index":4,"bucket":2,"rows":["a",""]},{"epoch":1,"index":5,"bucket":0,"rows":["b"]}]}
`
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNoLedger(t *testing.T) {
	l, err := OpenLedger("", 0, nil)
	if l != nil || err != nil {
		t.Fatalf("%v, %v", l, err)
	}
	l.Batch(&pipeline.Batch{Rows: []int32{0}}, nil)
}

// TestLedgerLongLine checks that a step of many rows, which fits into no other file's line, is read again.
func TestLedgerLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	l, err := OpenLedger(path, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("i", 500)
	for range 12 {
		l.Batch(&pipeline.Batch{Rows: make([]int32, 64)}, func(int32) string { return id })
	}
	if err := errors.Join(l.Take(events(&event.Step{Step: 1})), l.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() < 12*64*500 {
		t.Fatal(info, err)
	}
	if l, err = OpenLedger(path, 1, nil); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if again, err := os.Stat(path); err != nil || again.Size() != info.Size() {
		t.Errorf("%d bytes are left of %d, %v", again.Size(), info.Size(), err)
	}
}
