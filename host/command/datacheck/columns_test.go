package datacheck

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// array is a .npy file of bytes.
func array(values ...byte) []byte {
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }\n", len(values))
	return append([]byte("\x93NUMPY\x01\x00"+string(rune(len(header)))+"\x00"+header), values...)
}

// TestColumns: lists and arrays are read as in a run, and their steps are counted.
func TestColumns(t *testing.T) {
	dir := t.TempDir()
	lines := ""
	for i, a := range [][]byte{array(1, 2, 3), array(1, 2, 9), array(1, 2)} {
		lines += fmt.Sprintf(
			`{"audio_filepath": "%d.wav", "text": "text %d", "codes": "%d.npy", "sex": 1, "marks": [0.5, 1, 2]}`+"\n",
			i, i, i)
		for name, content := range map[string][]byte{".wav": wav(tone(1, 0.25, 100+float64(i)), 1, 0), ".npy": a} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)+name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "train.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	b := manifest.Shape{manifest.Sym("B")}
	m := &manifest.Bundle{
		Features: anyLength.Features, Buckets: []manifest.Bucket{{"T_code": 10}},
		Inputs: []manifest.TensorSpec{
			{
				Name: "codes", DType: manifest.U8, Shape: append(b, manifest.Sym("T_code")), Lengths: "n",
				Origin: manifest.OriginFile, Column: "codes", Below: 9,
			},
			{
				Name: "marks", DType: manifest.F32, Shape: append(b, manifest.Sym("T_code")), Lengths: "n",
				Origin: manifest.OriginColumn, Column: "marks",
			},
			{Name: "n", DType: manifest.I32, Shape: b, Origin: manifest.OriginColumn},
		},
	}
	columns, err := dataset.NewColumns(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	ix, err := dataset.Open(t.Context(), dataset.Config{Dir: dir, SampleRate: rate, MinSamples: 200, Columns: columns})
	if err != nil {
		t.Fatal(err)
	}
	r, err := check(t.Context(), ix, sides{train: ix}, nil, m, 1, 2, func(string, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if want := []dataset.IgnoredKey{
		{Key: "sex", Lines: 3, Place: "train.jsonl:1"},
	}; !reflect.DeepEqual(r.IgnoredKeys, want) {
		t.Errorf("ignored keys %+v, want %+v", r.IgnoredKeys, want)
	}
	var unusable []string
	for _, u := range r.Unusable {
		unusable = append(unusable, fmt.Sprintf("%d %s: %s", u.Line.Line, u.Stage, u.Reason))
	}
	want := []string{
		"2 decode: codes: 1.npy: value 2 is 9, but the input takes 0 to 8",
		"3 index: marks has the length 3, but codes has 2: n counts both",
	}
	if !reflect.DeepEqual(unusable, want) {
		t.Errorf("unusable:\n%s", strings.Join(unusable, "\n"))
	}
	if len(r.Steps) != 1 ||
		fmt.Sprint(r.Steps[0].Columns, r.Steps[0].Steps.Median, r.Steps[0].Rate.Max) != "[codes marks] 3 3" {
		t.Errorf("%+v", r.Steps)
	}
	var text strings.Builder
	err = r.write(&text)
	if err != nil || !strings.Contains(
		text.String(), "steps        codes, marks: 3 to 3, median 3; per second 3.00 to 3.00, median 3.00\n",
	) {
		t.Errorf("%v:\n%s", err, text.String())
	}
}
