package inspect

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/shared/hint"
)

const pico = "../../../ortgraphs/testdata/pico"

// TestPredictedLines: the prediction of a graph fits into 80 columns, with what is slow of it.
func TestPredictedLines(t *testing.T) {
	var out bytes.Buffer
	if err := Graph(&out, pico, t.TempDir(), 16, "RTX 3090", false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	predicted, found := 0, ""
	for _, line := range lines {
		if strings.Contains(line, "predicted: ") {
			predicted++
			found = ""
		}
		if strings.HasPrefix(line, "fusion ") {
			found = "no"
		}
		if predicted > 0 && found == "" && utf8.RuneCountInString(line) > 80 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
	if predicted == 0 || !strings.Contains(out.String(), "ms a step on one RTX 3090 in tf32") {
		t.Errorf("no prediction:\n%s", &out)
	}
	if !strings.Contains(out.String(), "larger") {
		t.Errorf("small kernels are not named:\n%s", &out)
	}
}

func TestPredictedJSON(t *testing.T) {
	var out bytes.Buffer
	if err := Graph(&out, pico, t.TempDir(), 16, "", true); err != nil {
		t.Fatal(err)
	}
	var s struct {
		Fused []struct {
			Predicted cost.Prediction `json:"predicted"`
		} `json:"fused"`
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil || len(s.Fused) == 0 {
		t.Fatalf("%v: %s", err, &out)
	}
	for _, f := range s.Fused {
		total := 0.0
		for _, part := range f.Predicted.Parts {
			total += part.MS
		}
		if p := f.Predicted; p.MS <= p.FloorMS || p.FloorMS <= 0 || total < 0.999*p.MS || total > 1.001*p.MS {
			t.Errorf("%+v", p)
		}
	}
}

// TestUnknownCard: the error names the cards that have figures.
func TestUnknownCard(t *testing.T) {
	var out bytes.Buffer
	err := Graph(&out, pico, t.TempDir(), 16, "Voodoo 2", false)
	if err == nil || !strings.Contains(err.Error(), "--card Voodoo 2: there are no figures of such a GPU") ||
		!strings.Contains(hint.Of(err), "RTX 4090") {
		t.Errorf("%v", err)
	}
}
