package retain_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/retain"
)

func TestOld(t *testing.T) {
	steps := []int64{10, 20, 30, 40}
	for _, test := range []struct {
		keep int
		best int64
		want []int64
	}{
		{0, 0, nil}, {4, 0, nil}, {5, 0, nil}, {2, 0, []int64{10, 20}}, {2, 10, []int64{20}},
		{1, 40, []int64{10, 20, 30}},
	} {
		if got := retain.Old(steps, test.keep, test.best); !slices.Equal(got, test.want) {
			t.Errorf("keep %d, best %d: %v, want %v", test.keep, test.best, got, test.want)
		}
	}
}

// tree lists what a folder has.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The newest evaluations and the best one keep their media. Files and folders of others stay, and what a link leads to.
func TestKeeper(t *testing.T) {
	run, outside := t.TempDir(), t.TempDir()
	write := func(path string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "1.wav"))
	for _, name := range []string{
		"samples/reference/clip-1.wav", "samples/notes.txt", "samples/step-1/1.wav", "samples/step-000001/mine.wav",
		"samples/step-000001/1.txt", "checkpoints/step-000001/1.wav",
	} {
		write(filepath.Join(run, name))
	}
	if err := os.Symlink(outside, filepath.Join(run, "samples", "step-000000")); err != nil {
		t.Fatal(err)
	}
	k := retain.New(retain.Config{Dir: run, Keep: 2})
	for n, step := range []string{"step-000001", "step-000002", "step-000003", "step-000004", "step-000005"} {
		write(filepath.Join(run, "samples", step, "1.wav"))
		write(filepath.Join(run, "samples", step, "clip-1.png"))
		write(filepath.Join(run, "probes", step, "attention.0.png"))
		at := int64(n + 1)
		if err := k.Take([]event.Event{
			&event.Evaluation{Step: at, Best: at == 2}, &event.Probed{Step: at}, &event.Spoken{Step: at},
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"checkpoints/step-000001/1.wav",
		"probes/step-000002/attention.0.png", "probes/step-000004/attention.0.png",
		"probes/step-000005/attention.0.png",
		"samples/notes.txt", "samples/reference/clip-1.wav", "samples/step-000000", "samples/step-000001/1.txt",
		"samples/step-000001/mine.wav", "samples/step-000002/1.wav", "samples/step-000002/clip-1.png",
		"samples/step-000004/1.wav", "samples/step-000004/clip-1.png", "samples/step-000005/1.wav",
		"samples/step-000005/clip-1.png", "samples/step-1/1.wav",
	}
	if got := tree(t, run); !slices.Equal(got, want) {
		t.Errorf("left are\n%q, want\n%q", got, want)
	}
	if _, err := os.Stat(filepath.Join(run, "probes", "step-000001")); !os.IsNotExist(err) {
		t.Errorf("an empty folder stays: %v", err)
	}
	if got := tree(t, outside); !slices.Equal(got, []string{"1.wav"}) {
		t.Errorf("a link is followed: %q is left", got)
	}
}
