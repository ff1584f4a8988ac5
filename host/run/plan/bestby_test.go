package plan

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/speak/samples"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestCheckBestBy: a name that evaluations do not have is refused with those that they have.
func TestCheckBestBy(t *testing.T) {
	metric := &manifest.Bundle{Outputs: []manifest.TensorSpec{{Name: "metric.mel_loss"}}}
	clips := samples.List{Clips: make([]samples.Sample, 1)}
	all := "loss, mel_loss, spoken.length_ratio, spoken.mcd_db, spoken.f0_cents, spoken.voicing_error, spoken.repeated"
	for _, c := range []struct {
		name, want, hint string
		list             samples.List
		blind            bool // without validation data
	}{
		{name: "loss", blind: true},
		{name: "mel_loss"},
		{name: "spoken.mcd_db", list: clips},
		{name: "spoken.repeated", list: samples.List{Sentences: clips.Clips}},
		{name: "mel_loss", blind: true, want: "compares evaluations, and the run has none", hint: "--val-data"},
		{name: "mel_los", want: "they have loss, mel_loss", hint: "mel_loss"},
		{name: "spoken.mcd", list: clips, want: "they have " + all, hint: "spoken.mcd_db"},
		{name: "spoken.silence", list: clips, want: "they have " + all, hint: "docs/schedules.md"},
		{name: "spoken.speaker_similarity", list: clips, want: "the bundle has no graph speaker", hint: "docs/"},
		{name: "spoken.wer", list: clips, want: "a command that transcribes speech", hint: "docs/"},
		{
			name: "spoken.mcd_db", list: samples.List{Sentences: clips.Clips},
			want: "they have loss, mel_loss, spoken.repeated", hint: "recordings",
		},
		{name: "spoken.mcd_db", want: "they have loss, mel_loss", hint: "--spoken-clips"},
	} {
		d := &Draft{Plan: Plan{
			Config: &config.Config{BestBy: c.name}, Bundle: &ortgraphs.Bundle{Manifest: metric}, Samples: c.list,
		}}
		if !c.blind {
			d.Data.Val = new(batch.Split)
		}
		err := checkBestBy(d)
		if (err == nil) != (c.want == "") || err != nil && (!strings.HasSuffix(err.Error(), c.want) ||
			!strings.Contains(hint.Of(err), c.hint)) {
			t.Errorf("%s: %v (%s), want %s (%s)", c.name, err, hint.Of(err), c.want, c.hint)
		}
	}
}
