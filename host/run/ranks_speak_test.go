package run

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/synthesizetest"
)

// TestRanksSpeak: two ranks share out what is spoken, and files, lines, report and judged values are those of one. The
// weights stay as they are, so that rounding changes nothing. A resumed run compares with the same value on all ranks.
func TestRanksSpeak(t *testing.T) {
	root := t.TempDir()
	bundle, sentences := filepath.Join(root, "bundle"), filepath.Join(root, "a.txt")
	if err := synthesizetest.Write(bundle, pico, "../data/dataset/testdata/voicebpe/tokenizer.json"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sentences, []byte("hello there.\ngood morning.\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	sample, err := dataset.Sample(filepath.Join(root, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	var trees []map[string]string
	var dirs []string
	for size := 1; size <= 2; size++ {
		dir := filepath.Join(root, fmt.Sprint(size))
		own := []string{
			"--train-data", sample, "--batch-size", fmt.Sprint(4 / size), "--lr", "1e-30", "--spoken-clips", "3",
		}
		rankTest{size: size, flags: append(own, "--graph", bundle, "--max-steps", "4", "--eval-every", "2",
			"--run-dir", dir, "--samples", sentences, "--best-by", "spoken.length_ratio")}.mustTrain(t)
		rankTest{
			size: size, flags: append(own, "--resume", dir, "--max-steps", "6", "--allow", "schedule"),
		}.mustTrain(t)
		tree := map[string]string{}
		for _, pattern := range []string{"samples/*/*", rundir.SpokenFile} {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				tree[path[len(dir):]] = string(data)
			}
		}
		trees, dirs = append(trees, tree), append(dirs, dir)
	}
	if len(trees[0]) != 3+3*(3*2+2)+1 || !reflect.DeepEqual(trees[0], trees[1]) {
		t.Errorf("one rank has %d files of speech, two have %d, or others", len(trees[0]), len(trees[1]))
	}
	one, two := readReport(t, dirs[0]), readReport(t, dirs[1])
	best, same := one.Evaluation.Best, two.Evaluation.Best
	if !reflect.DeepEqual(one.Spoken, two.Spoken) || one.Spoken == nil || best.Value == nil ||
		*best.Value != *same.Value || best.Step != same.Step {
		t.Errorf("one rank reports %+v and %+v, two %+v and %+v", one.Spoken, best, two.Spoken, same)
	}
	other := readReport(t, rundir.RankFolder(dirs[1], 1))
	if other.Spoken != nil || other.Evaluation.Best.Step != two.Evaluation.Best.Step {
		t.Errorf("rank 1 reports %+v and %+v", other.Spoken, other.Evaluation.Best)
	}
}
