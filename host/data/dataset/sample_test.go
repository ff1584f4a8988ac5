package dataset

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestSample(t *testing.T) {
	if n := len(sampleZip); n > 2000*1024 {
		t.Errorf("the archive has %d bytes, more than 2,000 KB", n)
	}
	cache := filepath.Join(t.TempDir(), "not", "made", "yet")
	dir, err := Sample(cache)
	if err != nil {
		t.Fatal(err)
	}
	clip := filepath.Join(dir, "wavs", "A", "0001.wav")
	before, err := os.Stat(clip)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Sample(cache); err != nil || again != dir {
		t.Fatalf("again: %s, %v; want %s", again, err, dir)
	}
	if after, _ := os.Stat(clip); !os.SameFile(before, after) {
		t.Error("a good folder was replaced")
	}

	if err := os.Truncate(clip, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := Sample(cache); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(clip); err != nil || after.Size() != before.Size() {
		t.Errorf("a truncated clip was not restored: %v, %v", after, err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*.tmp")); len(left) != 0 {
		t.Errorf("remaining files: %v", left)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Sample(cache); err != nil {
		t.Errorf("with a file in the folder's place: %v", err)
	}
}

func TestSampleAtTheSameTime(t *testing.T) {
	cache := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := Sample(cache); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestSampleSet(t *testing.T) {
	dir, err := Sample(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if has, err := HasEval(dir, false); !has || err != nil {
		t.Errorf("HasEval = %v, %v", has, err)
	}
	tok := testTokenizer(t)
	train := open(t, Config{Dir: dir, SampleRate: 22050, Tokenizer: tok})
	eval := open(t, Config{
		Dir: dir, Split: Eval, SampleRate: 22050, Tokenizer: tok, Speakers: train.Speakers, Languages: train.Languages,
	})
	ids := map[string]bool{}
	for _, ix := range []*Index{train, eval} {
		if len(ix.Rejected) != 0 || len(ix.Unknown) != 0 {
			t.Errorf("%s: rejected %v, unknown %v", ix.List, ix.Rejected, ix.Unknown)
		}
		for _, r := range ix.Rows {
			if ids[r.ID] {
				t.Errorf("%s is in both lists", r.ID)
			}
			ids[r.ID] = true
			if s := float64(r.Samples) / 22050; s < 1.2 || s > 2.6 {
				t.Errorf("%s lasts %.2f s", r.ID, s)
			}
			if r.Tokens > 48 {
				t.Errorf("%s has %d tokens", r.ID, r.Tokens)
			}
		}
	}
	if len(train.Rows) != 24 || len(eval.Rows) != 6 || len(train.Speakers) != 2 || len(eval.Speakers) != 2 {
		t.Errorf("%d and %d rows, speakers %q and %q", len(train.Rows), len(eval.Rows), train.Speakers, eval.Speakers)
	}
}
