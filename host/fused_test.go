package host

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/report"
)

// TestOtherForm: only a resumed run whose training graph has another form than before is warned of it.
func TestOtherForm(t *testing.T) {
	fused := &report.Fused{Kernels: 9}
	for _, c := range []struct {
		before *report.Graph // nil: there is no report
		now    *report.Fused
		want   string
	}{
		{nil, fused, ""},
		{&report.Graph{Fused: fused}, fused, ""},
		{&report.Graph{Unfused: "--fuse off"}, nil, ""},
		{&report.Graph{}, fused, ""}, // on the CPU
		{&report.Graph{Fused: fused}, nil, "continues with the graph as exported"},
		{&report.Graph{Unfused: "--fuse off"}, fused, "continues with the fused graph"},
	} {
		dir := t.TempDir()
		if c.before != nil {
			if err := (&report.Report{Graphs: []report.Graph{*c.before}}).Write(filepath.Join(dir, report.ReportFile)); err != nil {
				t.Fatal(err)
			}
		}
		if got := otherForm(dir, c.now); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v, %v: %q", c.before, c.now, got)
		}
	}
}
