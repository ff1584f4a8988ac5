package plan

import (
	"context"
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/speak/samples"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// ReadSamples reads the sentences that the run speaks at its evaluations, if there are any. FindStart returns its error
// in a resumed run.
func (d *Draft) ReadSamples(context.Context) error {
	err := readSamples(d)
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
	switch err = synthesize.Speaks(d.Bundle, d.Config.Graph); {
	case err != nil:
	case d.Data.Val == nil:
		err = hint.Errorf("name validation data with --val-data, or leave --samples out",
			"the run has no evaluations, at which they are spoken")
	default:
		d.Samples, err = samples.Read(file, d.Bundle, d.Data.Val.Index, d.Config.Normalize.Rules)
		err = exit.Advise(err, "name a file with a sentence in each line, or speak none: --samples ''")
	}
	if err != nil {
		return fmt.Errorf("--samples %s: %w", file, err)
	}
	return nil
}
