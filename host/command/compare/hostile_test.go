package compare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/page/pagetest"
)

// TestHostileRunsDoNothing: runs of strangers are compared, in text, JSON and a page, and do nothing else.
func TestHostileRunsDoNothing(t *testing.T) {
	mine := three(t)[0]
	for _, number := range []float64{1e308, -1e308, 0, -1, 5e5} {
		folders := []string{pagetest.HostileRun(t, number), mine, pagetest.HostileRun(t, 3),
			pagetest.RunOf(t, number, []string{"سلام (1) دنیا!"})}
		all := opened(t, folders)
		r := of(all)
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%g: %v", number, err)
		}
		for line := range strings.Lines(r.Text(80)) {
			if line = strings.TrimSuffix(line, "\n"); visible.Text(line) != line {
				t.Errorf("%g: hidden characters in %q", number, line)
			}
		}
		file := filepath.Join(t.TempDir(), "c.html")
		text, err := r.page(all, file)
		if err == nil {
			err = os.WriteFile(file, text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		if shown := pagetest.Check(t, string(text)); !strings.Contains(shown, `javascript:alert(1)"><script>`) {
			t.Errorf("%g: the page does not show the name of a run", number)
		}
	}
}
