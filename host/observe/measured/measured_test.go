package measured

import (
	"math"
	"os"
	"strings"
	"testing"
)

// TestDocs: the table of docs/speech-measures.md has the names and titles in this order.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/speech-measures.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows, want []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) == 5 {
			rows = append(rows, cells[0]+" | "+cells[1])
		}
	}
	for _, m := range All {
		want = append(want, "| `"+m.Name+"` | "+m.Title)
	}
	if got, want := strings.Join(rows, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("the table has\n%s\nand the program\n%s", got, want)
	}
}

func TestSay(t *testing.T) {
	for want, got := range map[string]string{
		"word errors 12 %":        Of(WER).Say(0.12),
		"MCD 6.1 dB":              Of(MCD).Say(6.11),
		"pitch error 120 cents":   Of(F0Cents).Say(120.3),
		"speaker similarity 0.61": Of(SpeakerSimilarity).Say(0.611),
		"length ratio 1.00":       Of(LengthRatio).Say(1),
		"other 0.250":             Of("other").Say(0.25),
		"repeated -":              Of(Repeated).Say(-1),
		"MCD -":                   Of(MCD).Say(math.Inf(1)),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if Of(SpeakerSimilarity).Judged(0.5) != -0.5 || Of(LengthRatio).Judged(0.5) != math.Ln2 || Of(MCD).Judged(3) != 3 {
		t.Error("a value is judged by another direction")
	}
}
