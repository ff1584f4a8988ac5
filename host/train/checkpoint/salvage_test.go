package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestDamageLeavesTheRest: whatever file of a checkpoint is damaged, the hint names what can still be used: another
// checkpoint of the run, and the weights where they are intact.
func TestDamageLeavesTheRest(t *testing.T) {
	for _, c := range []struct{ file, weights string }{
		{optimizerFile, paramsFile}, {stateFile, paramsFile}, {paramsFile, averageFile}, {averageFile, paramsFile},
		{manifestFile, paramsFile},
	} {
		for _, how := range []string{"cut", "changed", "missing"} {
			for _, alone := range []bool{true, false} {
				run := t.TempDir()
				store := NewStore(run)
				state := State{Step: 4, EMA: &EMA{Decay: 0.5}}
				params := []Tensor{
					{Name: "w", Shape: []int{1}, Data: []byte{1, 2, 3, 4}},
					{Name: "w", Shape: []int{1}, Data: []byte{1, 2, 3, 5}, Average: true},
				}
				moments := []Tensor{{Name: "exp_avg.w", Shape: []int{1}, Data: []byte{0, 0, 0, 0}}}
				for _, state.Step = range []int64{4, 9} {
					if alone && state.Step == 4 {
						continue
					}
					if _, err := store.Save(t.Context(), state, params, moments); err != nil {
						t.Fatal(err)
					}
				}
				path := store.Path(9)
				harm(t, filepath.Join(path, c.file), how)
				want := "--init " + filepath.Join(path, c.weights)
				_, _, at := store.Find("9")
				_, folder := Load(path)
				errs := []error{at, folder}
				if alone {
					_, _, last := store.Find("")
					errs = append(errs, last)
				}
				for _, err := range errs {
					text := hint.Of(err)
					if !strings.Contains(text, want) || strings.Contains(text, "is "+run+"@4") == alone {
						t.Errorf("%s %s: %v\nhint: %s", c.file, how, err, text)
					}
				}
				if !alone {
					got, skipped, err := store.Latest()
					if err != nil || got.State.Step != 4 || len(skipped) != 1 ||
						!strings.Contains(skipped[0].Warning(), want) {
						t.Errorf("%s %s: %v, %v", c.file, how, skipped, err)
					}
					got.Close()
				}
			}
		}
	}
}

// harm damages a file.
func harm(t *testing.T, file, how string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		switch how {
		case "cut":
			err = os.WriteFile(file, data[:len(data)/2], 0o666)
		case "changed":
			data[len(data)-1] ^= 1
			err = os.WriteFile(file, data, 0o666)
		default:
			err = os.Remove(file)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
