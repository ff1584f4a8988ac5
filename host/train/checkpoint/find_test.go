package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func TestFind(t *testing.T) {
	s := NewStore(t.TempDir())
	if _, _, err := s.Find("7"); err == nil || hint.Of(err) != "that run has no checkpoint yet" {
		t.Errorf("a run without checkpoints: %v, %q", err, hint.Of(err))
	}
	for _, step := range []int64{1, 20, 1_000_000} { // someState's best is step 1
		save(t, s, step, step%10)
	}
	for _, tt := range []struct {
		name string
		step int64
	}{{"", 1_000_000}, {"last", 1_000_000}, {"best", 1}, {"1", 1}, {"000020", 20}, {"1000000", 1_000_000}} {
		c, skipped, err := s.Find(tt.name)
		if err != nil || len(skipped) > 0 {
			t.Fatalf("%s: %v, %v", tt.name, err, skipped)
		}
		check(t, c, tt.step, tt.step%10)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"21", "-1", "first", "9999999999999999999"} {
		_, _, err := s.Find(name)
		if err == nil || hint.Of(err) != "there are checkpoints of the steps 1, 20, 1000000" {
			t.Errorf("%s: %v, %q", name, err, hint.Of(err))
		}
	}
	if err := os.Remove(filepath.Join(s.Path(20), manifestFile)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Find("20"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged checkpoint that was asked for: %v", err)
	}
}

// TestFindBest: none is the best before an evaluation, and one that was not saved is said to be missing.
func TestFindBest(t *testing.T) {
	s := NewStore(t.TempDir())
	params, moments := someTensors(1)
	for step, best := range map[int64]*Best{3: nil, 4: {Step: 2, Loss: 1}} {
		state := someState(step)
		state.Best = best
		if _, err := s.Save(t.Context(), state, params, moments); err != nil {
			t.Fatal(err)
		}
		c, _, err := s.Find(rundir.Best)
		if err == nil {
			c.Close()
			t.Errorf("step %d: %s is taken for the best", step, c.Path)
		}
		if _, err := s.RemoveAfter(0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRemoveAfter removes what is later than a step, and what a killed save left, and nothing else.
func TestRemoveAfter(t *testing.T) {
	s := NewStore(t.TempDir())
	if removed, err := s.RemoveAfter(3); err != nil || removed != nil {
		t.Errorf("without a folder: %v, %v", removed, err)
	}
	for _, salt := range []int64{1, 2, 103, 204} { // the last two share frozen weights with no other
		save(t, s, salt%100, salt)
	}
	if err := os.Rename(s.Path(4), s.Path(4)+oldSuffix); err != nil { // killed between the two renames of a save
		t.Fatal(err)
	}
	removed, err := s.RemoveAfter(2)
	if err != nil || !slices.Equal(removed, []int64{3, 4}) {
		t.Errorf("removed %v: %v", removed, err)
	}
	if got := names(t, s.dir); !slices.Equal(got, []string{rundir.Step(1), rundir.Step(2)}) {
		t.Errorf("%v are left", got)
	}
	c, _ := latest(t, s)
	check(t, c, 2, 2)
}
