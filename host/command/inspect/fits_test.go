package inspect

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
)

var update = flag.Bool("update", false, "write the tables of docs/which-batch.md")

// TestWhichBatchPage: the page has the plan of the default bundle.
func TestWhichBatchPage(t *testing.T) {
	const page = "../../../docs/which-batch.md"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- fits: make generate -->\n", "<!-- end of fits -->"
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the page has no place for the tables")
	}
	var want strings.Builder
	const name = "builtin:myxtts-nano"
	want.WriteString("\n```text\n$ xtts-host graph fits " + name + "\n")
	if err := Fits(&want, name, t.TempDir(), false); err != nil {
		t.Fatal(err)
	}
	want.WriteString("```\n\n")
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want.String()+end+after), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if got != want.String() {
		t.Errorf("make generate writes the tables: got\n%s\nwant\n%s", got, want.String())
	}
}

// TestFits: more memory holds more rows, and what is said to fit does by a plan of its own, but for the straight line
// between plans.
func TestFits(t *testing.T) {
	const pico = "../../../ortgraphs/testdata/pico"
	var out bytes.Buffer
	if err := Fits(&out, pico, t.TempDir(), true); err != nil {
		t.Fatal(err)
	}
	var r FitReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Bundle != "myxtts-pico" || r.UsableShare != usable ||
		len(r.Precisions) == 0 {
		t.Fatalf("%v: %s", err, &out)
	}
	b, err := ortgraphs.Load(pico)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Precisions {
		for i, p := range f.Planned {
			if i > 0 && (p.Rows != 2*f.Planned[i-1].Rows || p.ArenaBytes <= f.Planned[i-1].ArenaBytes ||
				p.SlotBytes != 2*f.Planned[i-1].SlotBytes) {
				t.Errorf("%s: %+v after %+v", f.Precision, p, f.Planned[i-1])
			}
		}
		if fixed := int64(f.FixedBytes + f.LibraryBytes); f.rows(fixed) != 0 || f.FixedBytes == 0 || f.RowBytes == 0 {
			t.Errorf("%s: without room for a row %d rows fit", f.Precision, f.rows(fixed))
		}
		if f.LibraryBytes <= libraries || f.LibraryBytes > 2*libraries {
			t.Errorf("%s: %d bytes for CUDA", f.Precision, f.LibraryBytes)
		}
		p, err := f.plan(b, "f32", 24)
		if err != nil {
			t.Fatal(err)
		}
		if rows := f.rows(p.TotalBytes + 1<<18); f.Precision == "f32" && (rows < 23 || rows > 26) {
			t.Errorf("24 rows are planned, %d said to fit", rows)
		}
	}
}

// TestFitsBesideMeasured: the plan is within 10 % of what the driver reported of runs on a GPU, of the models that need
// no export.
func TestFitsBesideMeasured(t *testing.T) {
	data, err := os.ReadFile("../../../docs/results/h200-ae08cff8-memory.json")
	if err != nil {
		t.Fatal(err)
	}
	var results struct {
		Sections []struct {
			Memory []struct {
				Model, Precision string
				Rows             int
				Measured         struct {
					Peak float64 `json:"process_peak_bytes"`
				}
			}
		}
	}
	if err := json.Unmarshal(data, &results); err != nil {
		t.Fatal(err)
	}
	compared, fits := 0, map[string][]Fit{"myxtts-nano": nil, "myxtts-multispeaker": nil}
	for name := range fits {
		var out bytes.Buffer
		var r FitReport
		if err := Fits(&out, "builtin:"+name, t.TempDir(), true); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		fits[name] = r.Precisions
	}
	for _, row := range results.Sections[0].Memory {
		for _, f := range fits[row.Model] {
			for _, p := range f.Planned {
				if f.Precision != row.Precision || p.Rows != row.Rows {
					continue
				}
				compared++
				if share := float64(p.TotalBytes) / row.Measured.Peak; share < 0.9 || share > 1.1 {
					t.Errorf("%s, %s, %d rows: %.3f of the measured bytes are planned", row.Model, row.Precision,
						row.Rows, share)
				}
			}
		}
	}
	if compared != 9 {
		t.Errorf("%d plans are compared with runs, want 9", compared)
	}
}
