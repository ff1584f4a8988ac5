package pytorch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// start starts a shell script in place of Python.
func start(t *testing.T, script string) (*Process, error) {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "python")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o777); err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(),
		Config{Python: file, Bundle: "b", Builder: "m:f", Device: "cpu", Threads: 3, Folder: folder})
	if err == nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

func TestMeasure(t *testing.T) {
	p, err := start(t, `
[ "$2 $3 $4 $5 $6 $7 $8 $9" = "--bundle b --builder m:f --device cpu --threads 3" ] || exit 1
[ -s "$1" ] && [ -s "$(dirname "$1")/loader.py" ] || exit 1
echo '{"torch": "9", "forms": ["eager"]}'
read request
echo '{"failed": "too large"}'
read request
[ "$request" = '{"dtype":"","form":"","batches":"","steps":0,"clips":"clips.json"}' ] || exit 1
echo '{"step_ms": [2, 3], "loss": null, "reference_loss": 1.5, "end_to_end_ms": [4], "stages_on": "gpu", "workers": 8}'
read request
echo last words >&2
exit 7
`)
	if err != nil {
		t.Fatal(err)
	}
	if p.Head.Torch != "9" || len(p.Head.Forms) != 1 {
		t.Errorf("head %+v", p.Head)
	}
	if _, err := p.Measure(Request{}); err != Failure("too large") {
		t.Errorf("a form that does not run: %v", err)
	}
	m, err := p.Measure(Request{Clips: "clips.json"})
	if err != nil || len(m.StepMs) != 2 || m.Loss != nil || *m.ReferenceLoss != 1.5 || len(m.Ms) != 1 ||
		m.StagesOn != "gpu" || m.Workers != 8 {
		t.Errorf("%+v, %v", m, err)
	}
	_, err = p.Measure(Request{})
	_, alive := errors.AsType[Failure](err)
	if alive || err == nil || !strings.HasSuffix(err.Error(), "/python: it ended: exit status 7: last words") {
		t.Errorf("a process that ends: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	_, err := start(t, `echo '{"error": "no torch", "hint": "install it"}'`)
	if err == nil || err.Error() != "no torch" || hint.Of(err) != "install it" {
		t.Errorf("%v, hint %q", err, hint.Of(err))
	}
	if _, err := start(t, "echo no JSON"); err == nil || hint.Of(err) != installAdvice {
		t.Errorf("%v, hint %q", err, hint.Of(err))
	}
}
