package resume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// saved is a run with a checkpoint at step 96, in the middle of its third epoch.
func saved(t *testing.T) Config {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, rundir.SettingsFile), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	state := checkpoint.State{
		Step: 96, OptimizerStep: 95, Epoch: 2, Batch: 5, Hashes: began(),
		Schedule: schedule.Schedule{Name: "cosine", TotalSteps: 300}, Best: &checkpoint.Best{Step: 50, Loss: 1},
		Quarantine: []checkpoint.Quarantined{{ID: "a", Reason: "silent"}}, Speakers: []string{"", "ben", "anna"},
		Languages: []string{"en"},
	}
	weights := []checkpoint.Tensor{
		{Name: "w", Shape: []int{1}, Data: make([]byte, 4)}, {Name: "v", Shape: []int{1}, Data: make([]byte, 4)},
	}
	moments := []checkpoint.Tensor{{Name: "exp_avg.w", Shape: []int{1}, Data: make([]byte, 4)}}
	store := checkpoint.NewStore(folder)
	if _, err := store.Save(t.Context(), state, weights, moments); err != nil {
		t.Fatal(err)
	}
	c, _, err := store.Latest()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return Config{
		Folder: folder, Checkpoint: c, Now: began(), Moments: []string{"exp_avg.w"},
		Length: func() int64 { return 300 }, Stored: map[string][]int{"w": {1}, "v": {1}},
	}
}

const otherLR = `["adamw",0.001,[0.9,0.999],1e-8,0,0.01,1]`

// TestSameSettings: nothing is said and nothing is changed.
func TestSameSettings(t *testing.T) {
	c := saved(t)
	was := c.Checkpoint.State
	d, err := Decide(c)
	if err != nil || d.Text() != "" || d.Comment() != "" || d.NewOptimizer || len(d.Unused) > 0 {
		t.Errorf("%v, %+v", err, d)
	}
	s := c.Checkpoint.State
	if s.Batch != was.Batch || len(s.Quarantine) != 1 || s.Best == nil || s.Schedule != was.Schedule {
		t.Errorf("the state is %+v, was %+v", s, was)
	}
	if err := d.Write(c.Folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.Folder, rundir.ChangesFile)); err == nil {
		t.Error("a record of no changes")
	}
}

// TestRefused: the error lists the differences, and the hint the list that accepts all of them, or what never changes.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		allow      []string
		name       string
		value      string
		text, hint string
	}{
		{nil, "optimizer", otherLR, "\n  lr: 0.003 -> 0.001", "--allow lr (docs/resume.md)"},
		{[]string{"data"}, "optimizer", otherLR, "\n  lr: 0.003 -> 0.001", "--allow data,lr (docs/resume.md)"},
		{nil, "best_by", "spoken.mcd_db", "\n  best-by: loss -> spoken.mcd_db", "--allow best-by (docs/resume.md)"},
		{[]string{"lr"}, "features", "other", "\n  features: 010101010101 -> other", "features can never change: the " +
			"model was trained on features of another kind; a new run can start from these weights with --init "},
		{nil, "later", "1", "\n  later: none -> 1", "later can never change: this program does not know"},
	} {
		run := saved(t)
		run.Allow, run.Now[c.name] = c.allow, c.value
		_, err := Decide(run)
		refused, ok := errors.AsType[*RefusedError](err)
		if !ok || !strings.HasSuffix(err.Error(), "other settings:"+c.text) {
			t.Errorf("%s: %v, %v", c.name, err, refused)
		}
		if !strings.Contains(hint.Of(err), c.hint) {
			t.Errorf("%s: hint %s", c.name, hint.Of(err))
		}
		if run.Checkpoint.State.Batch != 5 {
			t.Errorf("%s: refused, and the state has changed", c.name)
		}
	}
}

// TestRefusedWithoutConfig: the error says why the settings of the command are those that are compared.
func TestRefusedWithoutConfig(t *testing.T) {
	run := saved(t)
	run.Now["optimizer"] = otherLR
	config := filepath.Join(run.Folder, rundir.SettingsFile)
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	_, err := Decide(run)
	want := "\n  lr: 0.003 -> 0.001\n  (" + config + ", which has the settings of the run, is missing)"
	if err == nil || !strings.HasSuffix(err.Error(), "other settings:"+want) {
		t.Errorf("%v", err)
	}
}

// TestBestBy: with another measure, no evaluation so far is the best.
func TestBestBy(t *testing.T) {
	run := saved(t)
	state := &run.Checkpoint.State
	state.Best, state.EarlyStop = &checkpoint.Best{Step: 3, Loss: 2}, &schedule.Waiting{Evaluations: 2}
	run.Now["best_by"], run.Allow = "mel_loss", []string{"best-by"}
	d, err := Decide(run)
	if err != nil || state.Best != nil || state.EarlyStop != nil || !strings.Contains(d.Text(), "another measure now") {
		t.Errorf("best %+v, early stop %+v, %v: %s", state.Best, state.EarlyStop, err, d.Text())
	}
}

// TestNumbersStay: a speaker or a language keeps its number. New names may follow, and old ones may be missing.
func TestNumbersStay(t *testing.T) {
	for _, c := range []struct {
		speakers, languages []string
		want                string
	}{
		{nil, nil, ""},
		{[]string{"", "ben", "anna"}, []string{"en"}, ""},
		{[]string{"", "cid", "anna", "new"}, []string{"en", "fa"}, ""},
		{[]string{"", "anna", "new"}, []string{"fa", "en"}, "\n  speakers/anna: 2 -> 1\n  languages/en: 0 -> 1"},
		{[]string{"new", ""}, nil, "\n  speakers/(no name): 0 -> 1"},
	} {
		run := saved(t)
		run.Allow, run.Now["data"] = []string{"data"}, "x"
		run.Speakers, run.Languages = c.speakers, c.languages
		_, err := Decide(run)
		switch _, refused := errors.AsType[*RefusedError](err); {
		case c.want == "" && err != nil, c.want != "" && !refused:
			t.Errorf("%q: %v", c.speakers, err)
		case refused && !strings.HasSuffix(err.Error(), "other settings:"+c.want):
			t.Errorf("%q: %v, want %s", c.speakers, err, c.want)
		case refused &&
			!strings.Contains(hint.Of(err), "speakers can never change: the weights know each by its number"):
			t.Errorf("hint %s", hint.Of(err))
		}
	}
	run := saved(t)
	run.Checkpoint.State.Speakers, run.Speakers = nil, []string{"ben"}
	if _, err := Decide(run); err != nil {
		t.Errorf("a checkpoint of an older program: %v", err)
	}
}

// TestAllowKnowsItsNames: an unknown name lists the known ones, one that never changes says why.
func TestAllowKnowsItsNames(t *testing.T) {
	for name, want := range map[string]string{
		"learning-rate": "accumulate, augment, batch-size,",
		"features":      "--allow features: that can never change in a run: the model",
	} {
		c := saved(t)
		c.Allow = []string{name}
		if _, err := Decide(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--allow %s: %v", name, err)
		}
	}
	c := saved(t)
	c.Allow = []string{"batchsize"}
	if _, err := Decide(c); !strings.Contains(hint.Of(err), "batch-size") {
		t.Errorf("hint %s", hint.Of(err))
	}
}

// TestWhatBecomesOfTheRun: position, quarantine, schedule and optimizer state stay where a change leaves them a
// meaning.
func TestWhatBecomesOfTheRun(t *testing.T) {
	type fate struct {
		batch, quarantine int
		total, optimizer  int64
		best, empty       bool
	}
	kept := fate{batch: 5, quarantine: 1, total: 300, optimizer: 95, best: true}
	for _, c := range []struct {
		allow string
		now   map[string]string
		want  fate
		says  string
	}{
		{"lr", map[string]string{"optimizer": otherLR}, kept, "lr: 0.003 -> 0.001"},
		{"plugins", map[string]string{"plugins": `[]`}, kept, "plugins/augment: 0.1.0 (aaaaaaaaaaaa) -> none"},
		{"accumulate", map[string]string{"accumulation": "2"}, kept, "accumulate: 1 -> 2"},
		{
			"batch-size", map[string]string{"batch_size": "8", "order": "x"},
			fate{quarantine: 1, total: 300, optimizer: 95, best: true}, "epoch 3 begins again",
		},
		{
			"data", map[string]string{"data": "x"}, fate{total: 300, optimizer: 95, best: true},
			"1 clip that the run left out so far: tried again",
		},
		{
			"schedule", map[string]string{"schedule": `["constant",20]`},
			fate{batch: 5, quarantine: 1, optimizer: 95, best: true}, "as if the run had begun with it",
		},
		{
			"graph", map[string]string{"graph": "x"}, fate{batch: 5, quarantine: 1, total: 300, optimizer: 95},
			"another graph's",
		},
		{"freeze", map[string]string{"frozen": "1 of 2 tensors (x)"}, kept, "freeze: nothing -> 1 of 2"},
	} {
		run := saved(t)
		run.Allow = []string{c.allow, "seed"}
		for name, value := range c.now {
			run.Now[name] = value
		}
		d, err := Decide(run)
		if err != nil {
			t.Errorf("%s: %v", c.allow, err)
			continue
		}
		s := &run.Checkpoint.State
		got := fate{s.Batch, len(s.Quarantine), s.Schedule.TotalSteps, s.OptimizerStep, s.Best != nil, d.NewOptimizer}
		if got != c.want || !strings.Contains(d.Text(), c.says) ||
			!strings.Contains(d.Text(), "the same changes at the same steps") {
			t.Errorf("%s: %+v, want %+v\n%s", c.allow, got, c.want, d.Text())
		}
		if !slices.Equal(d.Unused, []string{"seed"}) {
			t.Errorf("%s: unused %v", c.allow, d.Unused)
		}
	}
	run := saved(t)
	run.Allow, run.Now["frozen"], run.Moments = []string{"freeze"}, "x", []string{"exp_avg.w", "exp_avg.v"}
	if d, err := Decide(run); err != nil || !d.NewOptimizer || run.Checkpoint.State.OptimizerStep != 0 {
		t.Errorf("a parameter that is trained from now on: %v, %+v", err, d)
	}
}

// TestStretch: --allow schedule gives a cosine the run's length now, also after a kill before the next checkpoint.
func TestStretch(t *testing.T) {
	c := saved(t)
	c.Length = func() int64 { return 600 }
	if d, err := Decide(c); err != nil || len(d.Changes) > 0 || c.Checkpoint.State.Schedule.TotalSteps != 300 {
		t.Fatalf("without --allow: %v, %+v", err, d)
	}
	c.Allow = []string{"schedule"}
	for range 2 {
		c.Checkpoint.State.Schedule = schedule.Schedule{Name: "cosine", TotalSteps: 300}
		d, err := Decide(c)
		if err != nil || len(d.History) != 1 || d.History[0].To != "600" ||
			c.Checkpoint.State.Schedule.TotalSteps != 0 || len(d.Unused) > 0 {
			t.Fatalf("%v, %+v", err, d)
		}
		if err := d.Write(c.Folder); err != nil {
			t.Fatal(err)
		}
		c.Allow = nil
	}
}

// TestSchedulesOfPlayers: what is fixed of the schedules of several players is kept or forgotten for all.
func TestSchedulesOfPlayers(t *testing.T) {
	c := saved(t)
	c.Length, c.Allow = func() int64 { return 600 }, []string{"schedule"}
	state := &c.Checkpoint.State
	state.Schedule = schedule.Schedule{Name: "constant", TotalSteps: 300}
	state.Players = []checkpoint.Player{
		{
			Name: "judge", Schedule: &schedule.Schedule{Name: "cosine", TotalSteps: 300},
			Plateau: &schedule.State{Reductions: 2},
		},
		{Name: "maker", Schedule: &schedule.Schedule{Name: "constant", TotalSteps: 300}},
		{Name: "old"},
	}
	if s, seen := state.ScheduleOf("judge"); s.Name != "cosine" || seen.Reductions != 2 {
		t.Errorf("%+v, %+v", s, seen)
	}
	if s, _ := state.ScheduleOf("old"); s != state.Schedule {
		t.Errorf("of an older program: %+v", s)
	}
	d, err := Decide(c)
	if err != nil || len(d.Changes) != 1 || d.Changes[0].String() != "schedule/length: 300 -> 600" {
		t.Fatal(d, err)
	}
	for _, p := range state.Players {
		if s, _ := state.ScheduleOf(p.Name); s != (schedule.Schedule{}) {
			t.Errorf("%s: %+v", p.Name, s)
		}
	}
}

// TestOtherParameters: another graph may have no other parameters.
func TestOtherParameters(t *testing.T) {
	c := saved(t)
	c.Allow, c.Now["graph"] = []string{"graph"}, "x"
	c.Stored = map[string][]int{"w": {2}, "u": {1}}
	_, err := Decide(c)
	for _, want := range []string{
		"parameters/w: [1] -> [2]", "parameters/v: [1] -> none", "parameters/u: none -> [1]",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
	if !strings.Contains(hint.Of(err), "parameters can never change") {
		t.Errorf("hint %s", hint.Of(err))
	}
}

// TestHistory: a change is accepted again as long as the run has no newer checkpoint, and what came after the step that
// a run goes back to is no longer part of it.
func TestHistory(t *testing.T) {
	c := saved(t)
	earlier := report.Change{Step: 40, Name: "seed", From: "7", To: "1"}
	later := report.Change{Step: 200, Name: "seed", From: "1", To: "3"}
	if err := (&Decision{History: []report.Change{earlier, later}}).Write(c.Folder); err != nil {
		t.Fatal(err)
	}
	c.Allow, c.Now["optimizer"] = []string{"lr"}, otherLR
	d, err := Decide(c)
	if err != nil {
		t.Fatal(err)
	}
	change := report.Change{Step: 96, Name: "lr", From: "0.003", To: "0.001"}
	if want := []report.Change{earlier, change}; !slices.Equal(d.History, want) {
		t.Errorf("history %v, want %v", d.History, want)
	}
	want := "#   at step 40: seed: 7 -> 1\n#   at step 96: lr: 0.003 -> 0.001\n"
	if !strings.HasSuffix(d.Comment(), want) {
		t.Errorf("comment %s", d.Comment())
	}
	if err := d.Write(c.Folder); err != nil {
		t.Fatal(err)
	}
	c.Allow = nil
	if d, err = Decide(c); err != nil || len(d.History) != 2 {
		t.Errorf("killed before its first checkpoint: %v, %+v", err, d)
	}
	c.Checkpoint.State.Hashes = c.Now
	if d, err = Decide(c); err != nil || len(d.History) != 2 || d.Text() != "" {
		t.Errorf("with a checkpoint of that step: %v, %+v", err, d)
	}
	c.Checkpoint.State.Hashes = began()
	c.Now = began()
	if d, err = Decide(c); err != nil || !slices.Equal(d.History, []report.Change{earlier}) {
		t.Errorf("taken back: %v, %+v", err, d)
	}
}
