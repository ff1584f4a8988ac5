package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/speak/samples"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// ReadSamples reads the sentences that the run speaks at its evaluations, if there are any, and chooses the clips.
// FindStart returns its error in a resumed run. A command that speaks nothing needs none of them.
func (d *Draft) ReadSamples(context.Context) error {
	if d.set.Silent {
		return nil
	}
	err := readSamples(d)
	if err == nil {
		err = chooseClips(d)
	}
	if err == nil {
		if _, err = samples.NewRecognizer(d.Config.Recognizer); err != nil {
			err = fmt.Errorf("--recognizer: %w", err)
		}
	}
	if err == nil {
		err = checkBestBy(d)
	}
	if d.Config.Resume != "" {
		d.unspoken, err = err, nil
	}
	return err
}

func readSamples(d *Draft) (err error) {
	file := d.Config.Samples
	if file == "" {
		return nil
	}
	if err = speaks(d, "leave --samples out"); err == nil {
		d.Samples, err = samples.Read(file, d.Bundle, d.Data.Val.Index, d.Config.Normalize.Rules)
		err = exit.Advise(err, "name a file with a sentence in each line, or speak none: --samples ''")
	}
	if err != nil {
		return fmt.Errorf("--samples %s: %w", file, err)
	}
	return nil
}

// chooseClips chooses the clips of the validation data that are spoken. If the user has not asked for them, there are
// none for a bundle that does not speak, or without clips of the right length.
func chooseClips(d *Draft) error {
	n := d.Config.SpokenClips
	if n == 0 {
		return nil
	}
	d.Samples.Optional = !config.Asked(d.set, "spoken-clips") && !strings.HasPrefix(d.Config.BestBy, report.BySpoken)
	err := speaks(d, "speak none: --spoken-clips 0")
	if err == nil {
		var chosen samples.List
		chosen, err = samples.Clips(n, d.Bundle, d.Data.Val.Index, d.Config.Normalize.Rules)
		d.Samples.Clips = chosen.Clips
		if !d.Samples.Optional { // else the run begins without them where they have no room
			d.Samples.Bytes = max(d.Samples.Bytes, chosen.Bytes)
		}
	}
	asked := config.Asked(d.set, "spoken-clips")
	switch {
	case err == nil || d.Samples.Optional:
		return nil
	case !asked && d.Data.Val == nil:
		return nil // checkBestBy says that the run has no evaluations
	case !asked:
		return fmt.Errorf("--best-by %s: %w", d.Config.BestBy, err)
	}
	return fmt.Errorf("--spoken-clips %d: %w", n, err)
}

// speaks refuses a bundle that does not speak, and a run without evaluations.
func speaks(d *Draft, instead string) error {
	if err := synthesize.Speaks(d.Bundle, d.Config.Graph); err != nil {
		return err
	}
	if d.Data.Val == nil {
		return hint.Errorf("name validation data with --val-data, or "+instead,
			"the run has no evaluations, at which they are spoken")
	}
	return nil
}
