package summary

import (
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/speak/samples"
)

// TestMute: a recognizer that gets no speech, and fewer clips than were asked for, each have a line.
func TestMute(t *testing.T) {
	three := samples.List{Clips: make([]samples.Sample, 3)}
	for _, c := range []struct {
		config config.Config
		list   samples.List
		want   []string
	}{
		{config.Config{Recognizer: "a {wav}", SpokenClips: 2}, samples.List{}, []string{
			"--recognizer is not used: the run speaks nothing",
		}},
		{config.Config{Recognizer: "a {wav}", SpokenClips: 3}, three, nil},
		{config.Config{SpokenClips: 150}, three, []string{
			"--spoken-clips 150: the validation data has only 3 clips that can be spoken",
		}},
		{config.Config{SpokenClips: 5}, samples.List{Clips: three.Clips, Optional: true}, nil},
	} {
		if got := mute(&plan.Plan{Config: &c.config, Samples: c.list}); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.config, got, c.want)
		}
	}
}

// TestFew: the warning about little that much depends on names what it is: the loss of clips, or their speech.
func TestFew(t *testing.T) {
	for by, want := range map[string]string{
		"loss":          "depend on the loss of only 3 clips: ",
		"spoken.mcd_db": "depend on the speech of only 2 texts: speak more",
	} {
		p := &plan.Plan{
			Config:  &config.Config{TrainData: "mine", BestBy: by},
			Samples: samples.List{Clips: make([]samples.Sample, 2)},
		}
		p.Data.Usage.Validation = &report.DataList{Clips: 3}
		if got := strings.Join(few(p), "\n"); !strings.Contains(got, want) {
			t.Errorf("--best-by %s: %q, want %q", by, got, want)
		}
	}
}
