package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/report"
)

// TestSaveWithoutLines fails at lines that cannot be made durable; finish then must not save, and say, the same again.
func TestSaveWithoutLines(t *testing.T) {
	metrics, err := report.OpenMetrics(filepath.Join(t.TempDir(), metricsFile), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	evals, err := report.OpenEvaluations(filepath.Join(t.TempDir(), evalFile), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{run: &run{job: &job{}}, metrics: metrics, evals: evals}
	defer o.close()
	if err := errors.Join(metrics.Close(), metrics.Write(&event.Step{Step: 1})); err != nil { // to a closed file
		t.Fatal(err)
	}
	if err := o.save(); !errors.Is(err, os.ErrClosed) || !o.lost {
		t.Errorf("error %v; lost: %t", err, o.lost)
	}
}
