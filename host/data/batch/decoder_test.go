package batch

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// TestDecodeEmptiesUnreadableRows decodes a batch with a torn clip twice: the first time the row is rejected and named,
// the second time it is known and empty from the start.
func TestDecodeEmptiesUnreadableRows(t *testing.T) {
	sample, err := dataset.Sample(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ix, err := dataset.Open(t.Context(), dataset.Config{Dir: sample, SampleRate: 22050})
	if err != nil {
		t.Fatal(err)
	}
	specs := []manifest.TensorSpec{tensorSpec("waveform", manifest.F32, 0, "B", "T_wav"), tensorSpec("waveform_lengths",
		manifest.I32, 0, "B")}
	ls, err := Layouts([]manifest.Bucket{{"T_wav": 100000}}, 3, nil, specs)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := ring.Create(1, ls[0].Size)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	plan, err := dataset.NewPlan(ix.Rows,
		dataset.PlanConfig{BatchSize: 3, Buckets: []manifest.Bucket{{"T_wav": 100000}}})
	if err != nil {
		t.Fatal(err)
	}
	var unread []string
	r := &decoder{
		common: &common{
			ring: memory, layouts: ls, guards: newGuards(memory, ls),
			data: Data{Train: NewSplit(report.Train, ix, plan, 1, 1)}, crops: make([][]dataset.Crop, 1),
		},
		made: madeByHost(ls, specs), tensors: make([][]dataset.Tensor, 1),
		unread: func(s *Split, bad []dataset.BadRow) error {
			for _, b := range bad {
				unread = append(unread, b.ID)
				s.bad.Add(b)
			}
			return nil
		},
	}
	if err := os.Truncate(filepath.Join(sample, "wavs", filepath.FromSlash(ix.Rows[1].ID)+".wav"), 1000); err != nil {
		t.Fatal(err)
	}
	lengths := func() (n []int) {
		for view := ls[0].View(memory.Slot(0), "waveform_lengths"); len(view) > 0; view = view[4:] {
			n = append(n, int(binary.LittleEndian.Uint32(view)))
		}
		return n
	}
	want := []int{ix.Rows[0].Samples, 0, ix.Rows[2].Samples}

	b := &pipeline.Batch{Rows: []int32{0, 1, 2}}
	rejected, err := r.Decode(t.Context(), 0, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(rejected) != 1 || rejected[0].Row != 1 || rejected[0].Reason == "" ||
		!slices.Equal(unread, []string{ix.Rows[1].ID}) {
		t.Errorf("rejected %+v, unread %v", rejected, unread)
	}
	if got := lengths(); !slices.Equal(got, want) {
		t.Errorf("lengths %v, want %v", got, want)
	}
	if err := ls[0].CheckGuards(memory.Slot(0)); err != nil {
		t.Error(err)
	}

	b = &pipeline.Batch{Epoch: 1, Rows: []int32{0, 1, 2}}
	rejected, err = r.Decode(t.Context(), 0, b)
	if err != nil || len(rejected) != 1 || rejected[0].Row != 1 || rejected[0].Reason == "" || len(unread) != 2 {
		t.Errorf("the second time: rejected %+v, unread %v, %v", rejected, unread, err)
	}
	if got := lengths(); !slices.Equal(got, want) {
		t.Errorf("the second time: lengths %v", got)
	}
}
