package plan

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// shareHash is the name of the share that is held out of training among the hashes of a checkpoint.
const shareHash = "val_share"

// findValidation opens the validation data of a run that trains on the data set dir: what --val-data names, or the list
// for evaluation, or a share of the training list, which it removes from that. open opens a list for evaluation. before
// means by the rules of a run that is older than the recognition of layouts.
func findValidation(
	d *Draft, dir string, before bool, open func(dir, flag, layout string) (*dataset.Index, error),
) error {
	named, list := d.Config.ValData, false
	if named == "" {
		if config.Asked(d.set, "val-list-layout") {
			return hint.Errorf(
				"name the list with --val-data; the evaluation list of a folder has the layout of its training list",
				"--val-list-layout %s: --val-data names no list", d.Config.ValListLayout)
		}
		var err error
		if list, err = dataset.HasEval(dir, before); err != nil {
			return err
		}
	}
	share, held, why, err := shareOf(d, list)
	if err != nil {
		return err
	}
	settleShare(d, share, why)
	var val *dataset.Index
	if held != nil {
		if d.Config.Resume == "" && countHeld(held) < report.FewEvaluated {
			d.Data.Larger = d.Data.Train.Index.ShareOf(report.FewEvaluated)
		}
		// Also where a resumed run is evaluated on other clips: it trains on the same ones.
		val = d.Data.Train.Index.Divide(held)
	}
	switch {
	case named != "":
		layout := d.Config.ValListLayout
		if d.Config.Resume != "" && config.Asked(d.set, "val-data") && !config.Asked(d.set, "val-list-layout") {
			layout = "" // the recorded one may be that of another list
		}
		if val, err = open(named, "--val-list-layout", layout); err != nil {
			return d.adviseMoved(fmt.Errorf("--val-data: %w", err), named, "--val-data")
		}
		if !before {
			settleLayout(d, "val-list-layout", val.Layout)
		}
	case held == nil && list:
		// the lists of a folder have one layout
		if val, err = open(dir, "--list-layout", d.Data.Train.Index.Layout); err != nil {
			return err
		}
	}
	if val != nil {
		d.Data.Val = &batch.Split{Name: report.Validation, Index: val}
	}
	return nil
}

func countHeld(held []bool) (n int) {
	for _, h := range held {
		if h {
			n++
		}
	}
	return n
}

// shareOf decides which share of the training list is held out, and which of its rows these are. list says that there
// is a list for evaluation. A run that continues keeps the share that it began with. why says why it is none.
func shareOf(d *Draft, list bool) (share float64, held []bool, why string, err error) {
	ix, asked := d.Data.Train.Index, config.Asked(d.set, "val-share")
	share = d.Config.ValShare
	switch {
	case d.Config.Resume != "" && !asked:
		if share, err = recordedShare(d); err != nil || share == 0 {
			return 0, nil, "the run began without", err
		}
		if held = ix.HeldOut(share); held == nil {
			return 0, nil, "every recording has more than half of the clips", nil
		}
		return share, held, "", nil
	case share == 0:
		return 0, nil, "", nil
	case d.Config.ValData != "":
		return 0, nil, "--val-data is given", nil
	case list && d.Config.Resume == "" && asked:
		alone := hint.Path(filepath.Join(ix.Dir, ix.List))
		return 0, nil, "", hint.Errorf("leave it out, or name the training list alone: --train-data "+alone,
			"--val-share %g: %s has a list for evaluation", share, ix.Dir)
	case list && !asked:
		return 0, nil, "there is a list for evaluation", nil
	case asked:
		if held = ix.HeldOut(share); held == nil {
			return 0, nil, "", hint.Errorf("name other clips with --val-data, or evaluate on none with --val-share 0",
				"--val-share %g: %s: every recording has more than half of the clips, so none can be held out", share,
				ix.List)
		}
		return share, held, "", nil
	}
	if held, why = ix.HeldByDefault(share, d.Bundle.Manifest.Limits()); held == nil {
		share = 0
	}
	return share, held, why, nil
}

// recordedShare returns the share of the run that continues, 0 for a run of a program that had none.
func recordedShare(d *Draft) (float64, error) {
	if d.openResumed() != nil {
		return 0, nil // FindStart says why it cannot be opened
	}
	text := d.Start.Resumed.State.Hashes[shareHash]
	if text == "" {
		return 0, nil
	}
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share > 0 && share <= 0.5) {
		return 0, fmt.Errorf("%s %s: the checkpoint has the %s %q", d.set.ResumeFlag, d.Config.Resume, shareHash, text)
	}
	return share, nil
}

// settleShare settles --val-share.
func settleShare(d *Draft, share float64, why string) {
	d.Data.Share, d.Data.Unshared = share, why
	if share == d.Config.ValShare {
		return
	}
	settled := *d.Config
	settled.ValShare = share
	d.Config = &settled
	if why == "" {
		why = "as the run began"
	}
	d.Changes = append(d.Changes, config.Change{Name: "val-share", Value: shareText(share), Origin: why})
}

func shareText(share float64) string { return strconv.FormatFloat(share, 'g', -1, 64) }
