package batch

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// melOutputs is a stage that makes mel f32[3,5,2] and mel_lengths i32[3] from a waveform f32[3,100], in a slot of
// zeros.
func melOutputs() (outputs, *ring.Layout, []byte) {
	layout := ring.NewLayout([]ring.Tensor{
		{Name: "mel", DType: manifest.F32, Shape: []int{3, 5, 2}},
		{Name: "mel_lengths", DType: manifest.I32, Shape: []int{3}},
	}, []ring.Tensor{{Name: "waveform", DType: manifest.F32, Shape: []int{3, 100}}})
	out := newOutputs(catalog.Instance{
		Stage: manifest.Stage{
			Inputs: []manifest.TensorSpec{{Name: "in", DType: manifest.F32}},
			Outputs: []manifest.TensorSpec{
				{Name: "out", DType: manifest.F32, Lengths: "counts"}, {Name: "counts", DType: manifest.I32},
			},
		},
		Inputs:  map[string]string{"in": "waveform"},
		Outputs: map[string]string{"out": "mel", "counts": "mel_lengths"},
	}, &layout, nil)
	return out, &layout, make([]byte, layout.Size)
}

func TestOutputLengths(t *testing.T) {
	for _, tt := range []struct {
		lengths [3]int32
		rows    []int32
		want    string
	}{
		{[3]int32{5, 0, 1}, []int32{7, 8, 9}, ""},
		{[3]int32{5, 0, 1}, []int32{7, -1, 9}, ""},
		{[3]int32{0, 0, 0}, []int32{-1, -1, -1}, ""},
		{[3]int32{5, 6, 1}, []int32{7, 8, 9}, "row 1 has length 6 in mel_lengths, outside 0 to 5"},
		{
			[3]int32{5, 5, math.MinInt32}, []int32{7, 8, 9},
			"row 2 has length -2147483648 in mel_lengths, outside 0 to 5",
		},
		{[3]int32{5, 4, 1}, []int32{7, -1, 9}, "the empty row 1 got length 4 in mel_lengths"},
	} {
		out, layout, slot := melOutputs()
		for i, n := range tt.lengths {
			binary.LittleEndian.PutUint32(layout.View(slot, "mel_lengths")[4*i:], uint32(n))
		}
		got := ""
		if err := out.checkLengths(slot, tt.rows); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("lengths %v of rows %v: %q, want %q", tt.lengths, tt.rows, got, tt.want)
		}
	}
}

// TestOutputRecounts has a stage count in energy_lengths what the graph counts by mel_lengths.
func TestOutputRecounts(t *testing.T) {
	layout := ring.NewLayout([]ring.Tensor{
		{Name: "mel_lengths", DType: manifest.I32, Shape: []int{3}},
		{Name: "energy", DType: manifest.F32, Shape: []int{3, 5}},
	}, []ring.Tensor{{Name: "energy_lengths", DType: manifest.I32, Shape: []int{3}}})
	out := newOutputs(catalog.Instance{
		Stage: manifest.Stage{Outputs: []manifest.TensorSpec{
			{Name: "energy", DType: manifest.F32, Lengths: "counts"}, {Name: "counts", DType: manifest.I32}}},
		Outputs:  map[string]string{"energy": "energy", "counts": "energy_lengths"},
		Recounts: map[string]string{"energy_lengths": "mel_lengths"},
	}, &layout, nil)
	slot := make([]byte, layout.Size)
	for i, n := range []byte{5, 0, 2} {
		layout.View(slot, "mel_lengths")[4*i], layout.View(slot, "energy_lengths")[4*i] = n, n
	}
	rows := []int32{7, -1, 9}
	if err := out.checkLengths(slot, rows); err != nil {
		t.Errorf("equal lengths: %v", err)
	}
	layout.View(slot, "energy_lengths")[8] = 3
	err := out.checkLengths(slot, rows)
	if err == nil || err.Error() != "row 2 has length 3 in energy_lengths, but 2 in mel_lengths" {
		t.Errorf("other lengths: %v", err)
	}
}

func TestOutputsNotFinite(t *testing.T) {
	out, layout, slot := melOutputs()
	nan := func(tensor string, element int) {
		binary.LittleEndian.PutUint32(layout.View(slot, tensor)[4*element:], math.Float32bits(float32(math.NaN())))
	}
	found := func() (rows []int) {
		out.notFinite(slot, func(row int, tensor string) {
			if tensor != "mel" {
				t.Errorf("found in %s", tensor)
			}
			rows = append(rows, row)
		})
		return rows
	}
	nan("waveform", 0) // no output
	if rows := found(); len(rows) > 0 {
		t.Errorf("found in rows %v of zeros", rows)
	}
	nan("mel", 0)
	nan("mel", 3)
	nan("mel", 29)
	if rows := found(); !slices.Equal(rows, []int{0, 2}) {
		t.Errorf("found in rows %v, want 0 and 2", rows)
	}
}

// TestOutputsOfColumns has a column of the list whose steps a stage counts.
func TestOutputsOfColumns(t *testing.T) {
	b := manifest.Shape{manifest.Sym("B")}
	columns, err := dataset.NewColumns(&manifest.Bundle{Inputs: []manifest.TensorSpec{
		{
			Name: "f0", DType: manifest.F32, Shape: append(b, manifest.Sym("T_mel")), Lengths: "mel_lengths",
			Origin: manifest.OriginFile, Column: "pitch",
		},
		{Name: "mel_lengths", DType: manifest.I32, Shape: b, Origin: manifest.OriginStage},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	layout := ring.NewLayout([]ring.Tensor{
		{Name: "mel", DType: manifest.F32, Shape: []int{3, 5}},
		{Name: "mel_lengths", DType: manifest.I32, Shape: []int{3}},
	}, nil)
	out := newOutputs(catalog.Instance{
		Stage: manifest.Stage{Outputs: []manifest.TensorSpec{
			{Name: "mel", DType: manifest.F32, Lengths: "counts"}, {Name: "counts", DType: manifest.I32},
		}},
		Outputs: map[string]string{"mel": "mel", "counts": "mel_lengths"},
	}, &layout, columns)
	slot := make([]byte, layout.Size)
	for i, n := range []byte{5, 4, 0} {
		layout.View(slot, "mel_lengths")[4*i] = n
	}
	var found []string
	rows := []dataset.Row{{Values: []dataset.Value{{Length: 3}}}, {Values: []dataset.Value{{Length: 5}}}}
	out.misaligned(slot, []int32{1, 0, -1}, rows,
		func(row int, why string) { found = append(found, fmt.Sprint(row, ": ", why)) })
	if want := []string{"1: pitch has the length 3, but mel_lengths is 4"}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}
