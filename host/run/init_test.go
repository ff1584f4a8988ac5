package run

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/console"
)

// TestInitFromRun begins with the weights of a finished run, which the first step then sees.
func TestInitFromRun(t *testing.T) {
	was := referenceRun(t)
	fresh := mustTrain(t, "--max-steps", "1", "--model-start-delay", "0")
	var out strings.Builder
	dir, err := trainPico(t, console.Console{Out: &out}, "--max-steps", "1", "--model-start-delay", "0", "--init", was)
	if err != nil {
		t.Fatal(err)
	}
	line := "weights      " + filepath.Join(was, "checkpoints", "step-000016") + ": 46 tensors loaded\n"
	if !strings.Contains(out.String(), line) {
		t.Errorf("no line %q in\n%s", line, &out)
	}
	a, b := losses(t, fresh), losses(t, dir)
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] {
		t.Errorf("the first step does not see the weights:\n%s\n%s", a, b)
	}
	// The bundle's own weights change nothing.
	same, err := trainPico(t, console.Console{}, "--max-steps", "1", "--model-start-delay", "0", "--init", pico)
	if err != nil {
		t.Fatal(err)
	}
	if c := losses(t, same); !slices.Equal(a, c) {
		t.Errorf("the bundle's weights give another first step:\n%s\n%s", a, c)
	}
}

func TestInitRefusesWhatFitsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.safetensors")
	header := `{"encoder.weight":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	if err := os.WriteFile(path, append(file, make([]byte, 16)...), 0o666); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	_, err := trainPico(t, console.Console{Out: &out}, "--max-steps", "1", "--init", path)
	want := "--init " + path + ": no tensor of it fits the bundle myxtts-pico"
	if exit.Code(err) != 2 || err.Error() != want || exit.Hint(err) != "tensors are matched by name and shape" {
		t.Errorf("exit status %d, %v, hint %q; want %s", exit.Code(err), err, exit.Hint(err), want)
	}
	for _, line := range []string{
		": 0 tensors loaded\n", "46 not in the file: the bundle's values are kept: ",
		"1 in the file, but not in the bundle: encoder.weight\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, &out)
		}
	}
}
