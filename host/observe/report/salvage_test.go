package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// TestSalvage: lines of speech and of probes that cannot be read are left out, the others stay up to the step, and the
// file as it was is put aside. What is written then follows them.
func TestSalvage(t *testing.T) {
	spoken := func(step int) string { return fmt.Sprintf(`{"step":%d,"clip":1,"id":"a","measures":{}}`, step) }
	probed := func(step int) string { return fmt.Sprintf(`{"step":%d,"name":"a"}`, step) }
	for name, c := range map[string]struct {
		line func(step int) string
		bad  string
		open func(path string) (problem string, write func() error, close func() error, err error)
	}{
		rundir.SpokenFile: {spoken, `{"step":2,"id":"of neither"}`, func(path string) (string, func() error, func() error, error) {
			s, err := OpenSpoken(path, 4)
			if err == nil && len(s.Kept()) != 3 {
				t.Errorf("%+v", s.Kept())
			}
			return s.Problem(), func() error { return s.Write(SpokenLine{Step: 5, Clip: 1}) }, s.Close, err
		}},
		"probes.jsonl": {probed, `{"step":2,"name":3}`, func(path string) (string, func() error, func() error, error) {
			p, err := OpenProbed(path, 4)
			if err == nil && p.Evaluations() != 3 {
				t.Errorf("%d evaluations", p.Evaluations())
			}
			write := func() error { return p.Write(&event.Probed{Step: 5, Tensors: []event.Probe{{Name: "a"}}}) }
			return p.Problem(), write, p.Close, err
		}},
	} {
		path := filepath.Join(t.TempDir(), name)
		was := strings.Join([]string{
			c.line(1), c.bad, c.line(3), "\x00", strings.Repeat("x", maxLine+5), c.line(4), c.line(6), "",
		}, "\n")
		if err := os.WriteFile(path, []byte(was), 0o666); err != nil {
			t.Fatal(err)
		}
		problem, write, done, err := c.open(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(problem, name+": 3 lines cannot be read and left out; the file as it was is "+name+
			".damaged: line 2: ") {
			t.Errorf("the problem is %q", problem)
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := done(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		lines := strings.Split(string(got), "\n")
		if err != nil || len(lines) != 5 || strings.Join(lines[:3], "\n") != c.line(1)+"\n"+c.line(3)+"\n"+c.line(4) ||
			!strings.HasPrefix(lines[3], `{"step":5,`) {
			t.Errorf("%s has %q, %v", name, got, err)
		}
		if aside, err := os.ReadFile(path + Aside); err != nil || string(aside) != was {
			t.Errorf("put aside: %d bytes, %v", len(aside), err)
		}
		if problem, _, done, err := c.open(path); problem != "" || err != nil || done() != nil {
			t.Errorf("once more: %q, %v", problem, err)
		}
	}
}
