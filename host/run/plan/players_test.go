package plan

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestSettingsOfPlayers: a run's settings are those of the last player; rates of the others keep their ratio, and other
// values hold for all.
func TestSettingsOfPlayers(t *testing.T) {
	last := manifest.Optimizer{LR: 1e-3, WeightDecay: 0.01, GradClip: 1}
	other := manifest.Optimizer{LR: 3e-3, WeightDecay: 0.2, GradClip: 5}
	like := manifest.Optimizer{LR: 1e-3, WeightDecay: 0.01, GradClip: 1}
	for _, c := range []struct {
		name      string
		own       manifest.Optimizer
		set       config.Config
		lr        float64
		decay, by float64
	}{
		{"the bundle's", other, config.Config{LR: 1e-3, WeightDecay: 0.01, GradClip: 1}, 3e-3, 0.2, 5},
		{"a rate", other, config.Config{LR: 2e-3, WeightDecay: 0.01, GradClip: 1}, 6e-3, 0.2, 5},
		{"decay and clipping", other, config.Config{LR: 1e-3, WeightDecay: 0.5, GradClip: 0}, 3e-3, 0.5, 0},
		{
			"the last player, or one like it", like, config.Config{LR: 0.7, WeightDecay: 0.6, GradClip: 0.5}, 0.7, 0.6,
			0.5,
		},
	} {
		if got := settings(c.own, last, &c.set); got.LR != c.lr || got.WeightDecay != c.decay || got.GradClip != c.by {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestSchedulesOfPlayers: a schedule or a warm-up of the run that is not the last player's in the bundle holds for all.
// The minimum keeps the ratio of the rates, also where a rate is 0.
func TestSchedulesOfPlayers(t *testing.T) {
	last, other := manifest.Schedule{Name: "cosine", WarmupSteps: 20},
		manifest.Schedule{Name: "constant", WarmupSteps: 5}
	for _, c := range []struct {
		set  config.Config
		want manifest.Schedule
	}{
		{config.Config{Schedule: "cosine", WarmupSteps: 20}, other},
		{config.Config{Schedule: "linear", WarmupSteps: 20}, manifest.Schedule{Name: "linear", WarmupSteps: 5}},
		{config.Config{Schedule: "cosine", WarmupSteps: 0}, manifest.Schedule{Name: "constant"}},
	} {
		if got := scheduleOf(other, last, &c.set); got != c.want {
			t.Errorf("%+v: %+v", c.set, got)
		}
		got := scheduleOf(last, last, &c.set)
		if got.Name != c.set.Schedule || int64(got.WarmupSteps) != c.set.WarmupSteps {
			t.Errorf("the last player: %+v", got)
		}
	}
	c := &config.Config{LR: 1e-3, MinLR: 1e-4}
	for _, lr := range []float64{0, 1e-3, 4e-3} {
		p := Player{Optimizer: manifest.Optimizer{LR: lr}, Schedule: last}
		s := p.schedule(c, 100)
		if s.BaseLR != lr || s.MinLR != 1e-4*(lr/1e-3) || s.DecayStart != 20 || s.TotalSteps != 100 {
			t.Errorf("%+v", s)
		}
	}
	p := Player{Schedule: last}
	if s := p.schedule(&config.Config{}, 100); s.MinLR != 0 {
		t.Errorf("the rate of the run is 0: %+v", s)
	}
}

// TestSchedulesNameTheirPlayers: what is said of a schedule names the player, if there are several.
func TestSchedulesNameTheirPlayers(t *testing.T) {
	const late = " ends at step 15, with the warm-up, which is longer than the run was when it began: the learning " +
		"rate is 0 from there to step 20 (--allow schedule stretches it)"
	const rest = " ends at step 10, the length of the run when it began: the learning rate is 0 from there to step " +
		"20 " +
		"(--allow schedule stretches it)"
	short, constant := schedule.Schedule{Name: "cosine", TotalSteps: 10},
		schedule.Schedule{Name: "constant", TotalSteps: 10}
	for _, c := range []struct {
		players []Player
		all     []schedule.Schedule
		want    []string
	}{
		{[]Player{{}}, []schedule.Schedule{short}, []string{"the cosine schedule" + rest}},
		{
			[]Player{{Name: "judge"}, {Name: "voice"}}, []schedule.Schedule{short, short},
			[]string{"the cosine schedule of judge" + rest, "the cosine schedule of voice" + rest},
		},
		{
			[]Player{{}}, []schedule.Schedule{{Name: "linear", TotalSteps: 10, DecayStart: 15}},
			[]string{"the linear schedule" + late},
		},
		{[]Player{{}}, []schedule.Schedule{{Name: "linear", TotalSteps: 10, DecayStart: 20}}, nil},
		{
			[]Player{{Name: "judge"}, {Name: "voice"}}, []schedule.Schedule{constant, short},
			[]string{"the cosine schedule of voice" + rest},
		},
	} {
		if got := EndsEarly(c.players, c.all, 20); !slices.Equal(got, c.want) {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}

	plateau := manifest.Schedule{Name: schedule.Plateau}
	for name, players := range map[string][]Player{
		"":          {{Optimizer: manifest.Optimizer{LR: 1}, Schedule: plateau}},
		" of voice": {{Name: "judge"}, {Name: "voice", Optimizer: manifest.Optimizer{LR: 1}, Schedule: plateau}},
	} {
		d := &Draft{Plan: Plan{Config: &config.Config{LR: 1}, Training: Training{Players: players}}}
		want := "the schedule plateau" + name +
			" lowers the learning rate by the validation loss, and there is no validation data"
		if err := d.CheckLearning(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
