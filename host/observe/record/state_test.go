package record

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestStates: docs/runs.md has the states, and no others, in their order. Each has a colour that the pages have.
func TestStates(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/runs.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| state | meaning |\n|---|---|\n"
	for _, s := range States {
		want += fmt.Sprintf("| `%s` | %s |\n", s.Name, s.Means)
		if !strings.Contains(" good warn bad info ", " "+s.Tone+" ") || s != StateOf(s.Name) {
			t.Errorf("%+v", s)
		}
	}
	if !strings.Contains(string(doc), want+"\n") {
		t.Errorf("docs/runs.md lacks\n%s", want)
	}
	if s := StateOf("unheard of"); s.Name != "unheard of" || s.Means != "" {
		t.Errorf("%+v", s)
	}
}
