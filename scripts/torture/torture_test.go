package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func points(int, string) int { return 10 }

// TestCases: a case depends only on its seed and number, and the usual numbers of cases cover everything.
func TestCases(t *testing.T) {
	phase, pair := map[string]int{}, map[string]int{}
	for n := range 200 {
		c := newCase(1, n, points)
		if again := newCase(1, n, points); !reflect.DeepEqual(c, again) {
			t.Fatalf("%v, and again %v", c, again)
		}
		s := c.injections[0]
		if s.occurrence < 1 || s.occurrence > 10 {
			t.Errorf("%v", c)
		}
		phase[s.phase]++
		pair[fmt.Sprint(s.phase, s.fault)]++
		if n == 12 {
			for _, p := range phases {
				if phase[p] < 1 {
					t.Errorf("13 cases do not reach %s", p)
				}
			}
		}
	}
	for _, p := range phases {
		if phase[p] < 5 {
			t.Errorf("200 cases reach %s %d times", p, phase[p])
		}
	}
	if len(pair) != len(phases)*len(faults) {
		t.Errorf("200 cases have %d pairs of phase and fault", len(pair))
	}
}

// ledger returns the ledger of a run over epochs of three batches of two rows, with two batches per step.
func ledger() []string {
	var lines []string
	for step := 1; step <= steps; step++ {
		var batches []string
		for i := 2 * (step - 1); i < 2*step; i++ {
			batches = append(batches, fmt.Sprintf(`{"epoch":%d,"index":%d,"rows":["a%d","b%d"]}`, i/3, i%3, i%3, i%3))
		}
		lines = append(lines, fmt.Sprintf(`{"step":%d,"batches":[%s]}`, step, strings.Join(batches, ",")))
	}
	return lines
}

// TestFaults: every name is a signal. Signal 0 does nothing, and would count as injected.
func TestFaults(t *testing.T) {
	listed := map[fault]bool{}
	for _, f := range faults {
		listed[f] = true
		for name := range strings.SplitSeq(f.signal, ", ") {
			if signals[name] == 0 && f.signal != noReader {
				t.Errorf("%v: no signal %s", f, name)
			}
		}
	}
	if len(listed) != len(faults) {
		t.Errorf("a fault is listed twice: %v", faults)
	}
	for _, f := range []fault{{"host", "PIPE"}, {"host", "HUP"}, {"host", "INT, INT"}, {"host", "TERM, TERM"}} {
		if !listed[f] {
			t.Errorf("%v is no fault", f)
		}
	}
}

func TestLedgerIsChecked(t *testing.T) {
	replace := func(line int, old, new string) func([]string) []string {
		return func(l []string) []string {
			l[line] = strings.Replace(l[line], old, new, 1)
			return l
		}
	}
	for _, tt := range []struct {
		name   string
		change func([]string) []string
		want   string // "" for none
	}{
		{"whole", func(l []string) []string { return l }, ""},
		{"an empty row", replace(steps-1, `"a0"`, `""`), ""},
		{
			"a lost step", func(l []string) []string { return append(l[:5:5], l[6:]...) },
			"ledger, line 6: step 7 with 2 batches",
		},
		{
			"a doubled step", func(l []string) []string { return append(l[:6:6], l[5:]...) },
			"ledger, line 7: step 6 with 2 batches",
		},
		{"a step too few", func(l []string) []string { return l[:steps-1] }, "ledger: 99 steps, not 100"},
		{"a lost row", replace(1, `"a2"`, `""`), "ledger: epoch 1 has 6 rows, or others than epoch 0, which has 5"},
		{"a doubled row", replace(1, `"a2"`, `"b2"`), "ledger, step 2: row b2 occurs twice in epoch 0"},
		{
			"a lost batch", replace(0, `{"epoch":0,"index":0,"rows":["a0","b0"]},`, ""),
			"ledger, step 1: batch (0, 1), not (0, 0)",
		},
		{"no ledger", func(l []string) []string { l[0] = "x"; return l }, "ledger, line 1: invalid character"},
	} {
		err := checkLedger(tt.change(ledger()), steps)
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCompare(t *testing.T) {
	metrics := func(text string) []string {
		lines, err := withoutClocks([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	ref := &result{map[string][]string{
		"metrics.jsonl": metrics(`{"step":1,"loss":0.30000000000000004,"step_ms":5}`), "log.jsonl": nil,
	}}
	for _, tt := range []struct {
		name, want string
		files      map[string][]string
	}{
		{"another clock", "", map[string][]string{
			"metrics.jsonl": metrics(`{"step":1,"loss":0.30000000000000004,"step_ms":6}`), "log.jsonl": nil,
		}},
		{
			"another loss",
			`metrics.jsonl, line 1: {"loss":0.3,"step":1}, undisturbed run: {"loss":0.30000000000000004,"step":1}`,
			map[string][]string{"metrics.jsonl": metrics(`{"step":1,"loss":0.3}`), "log.jsonl": nil},
		},
		{"a file too few", "log.jsonl is missing", map[string][]string{"metrics.jsonl": ref.files["metrics.jsonl"]}},
		{"a file too many", "report.json.tmp is left over",
			map[string][]string{"metrics.jsonl": ref.files["metrics.jsonl"], "log.jsonl": nil, "report.json.tmp": nil}},
	} {
		err := (&result{tt.files}).compare(ref)
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestGrowth(t *testing.T) {
	s := &series{Limit: 10}
	for i := range 100 {
		s.values = append(s.values, int64(i/5))
	}
	if s.sum() || s.Growth < 10 || s.Max != 19 {
		t.Errorf("%+v", s)
	}
	// the warm-up is not counted
	flat := &series{Limit: 10, values: []int64{500, 500, 7, 9, 8, 7, 9, 8, 7, 9, 8, 9, 7, 8, 9, 7, 8, 9, 7, 8}}
	if !flat.sum() || flat.Max != 9 {
		t.Errorf("%+v", flat)
	}
}

// TestUnfitBundle: a bundle that cannot be changed is an error, which leaves no folder.
func TestUnfitBundle(t *testing.T) {
	temp, graph := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	if err := os.WriteFile(filepath.Join(graph, "bundle.json"), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	l := lab{host: graph, plugins: graph, graph: graph}
	if err := l.open(); err == nil || !strings.Contains(err.Error(), "bundle "+graph+": it has no parameter") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v remain, %v", left, err)
	}
}
