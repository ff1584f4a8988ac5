package stagetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// noise is a correct stage if fault is empty. Otherwise it breaks a rule.
type noise struct {
	level float32
	fault string
	calls atomic.Int64
}

func (n *noise) Configure(_ context.Context, cfg *stage.Config) error {
	var c struct {
		Level float32 `json:"level"`
	}
	if err := cfg.Decode(&c); err != nil {
		return err
	}
	n.level = c.Level
	return nil
}

func (n *noise) Process(_ context.Context, b *stage.Batch) error {
	wave, lengths, width := b.Float32("waveform"), b.Int32("waveform_lengths"), b.Shape("waveform")[1]
	call := n.calls.Add(1)
	switch n.fault {
	case "guard":
		// One element too many, past the end of the slice.
		*(*float32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(wave)), 4*len(wave))) = 0
	case "other tensor":
		b.Int32("text")[0]++
	case "state":
		wave[0] = float32(call)
	case "pad":
		wave[2*width-1] = 0 // row 1 is empty
	case "nan":
		wave[0] /= 0
		wave[0] -= wave[0]
	case "lengths":
		lengths[1] = 3
	case "all empty":
		if n := lengths[0] + lengths[2]; n == 0 {
			panic("nothing to do")
		}
	case "reject":
		b.Reject(0, "too loud")
	}
	for row, length := range lengths {
		rng := b.Rand(row)
		switch {
		case n.fault == "row number":
			rng = b.Rand(0)
		case n.fault == "asked":
			b.Report(row, "level", late(rng.Float64))
		default:
			b.Report(row, "level", n.level)
		}
		if _, ok := b.Source(row); n.fault == "" && ok != (length > 0) {
			return fmt.Errorf("row %d of %d samples has a source: %v", row, length, ok)
		}
		for i := range wave[row*width : row*width+int(length)] {
			wave[row*width+i] += n.level * float32(rng.Float64())
		}
	}
	return nil
}

// late is a number that is drawn when it is reported.
type late func() float64

func (l late) MarshalJSON() ([]byte, error) { return json.Marshal(l()) }

func run(t *testing.T, fault string) {
	Run(t, func() stage.Stage { return &noise{fault: fault} }, Options{
		Manifest: "testdata/plugin.json",
		Stage:    "noise",
		Config:   `{"level": 0.5}`,
		Buckets:  []manifest.Bucket{{"T_wav": 103, "T_text": 7}, {"T_wav": 500, "T_text": 9}},
	})
}

func TestGoodStagePasses(t *testing.T) { run(t, "") }

// TestList: the list is that of the host, with the content of the files.
func TestList(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"noise/b.raw", "noise/a.raw", "noise/.hidden", "noise/lost+found/d", "far/c.raw"} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o777), os.WriteFile(at, []byte(name), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"noise/far": "../far", "noise/lost": "nowhere", "link": "noise"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := list(filepath.Join(dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range got.Files {
		content, err := os.ReadFile(filepath.Join(got.Path, f.Name))
		sum := sha256.Sum256(content)
		if err != nil || f.Size != uint64(len(content)) || !bytes.Equal(f.Sha256, sum[:]) {
			t.Errorf("%s: %v, %d bytes", f.Name, err, f.Size)
		}
		names = append(names, f.Name)
	}
	if want := []string{"a.raw", "b.raw", "far/c.raw"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// TestFaultsAreFound runs stages with one fault each in a separate process. Their tests must fail.
func TestFaultsAreFound(t *testing.T) {
	const variable = "STAGETEST_FAULT"
	if fault := os.Getenv(variable); fault != "" {
		run(t, fault)
		return
	}
	for fault, want := range map[string]string{
		"guard":        `byte 0 after the end of tensor "tensor_waveform" was overwritten`,
		"other tensor": "tensor_text is not an output, but was changed",
		"lengths":      "tensor_waveform_lengths is not an output, but was changed",
		"pad":          "is after the row's 0 elements and is 0, not the pad value -2.5",
		"nan":          "row 0: element 0 of waveform is NaN",
		"state":        "the same batch gave different bits",
		"asked":        "other bits when the host asked for its draws",
		"row number":   "the result must depend only on the row and its key",
		"all empty":    "process: panic: nothing to do",
		"reject":       "row 0 of a batch of noise was rejected: too loud",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestFaultsAreFound$", "-test.count=1")
			cmd.Env = append(os.Environ(), variable+"="+fault)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%v; the output has no %q:\n%s", err, want, out)
			}
		})
	}
}
