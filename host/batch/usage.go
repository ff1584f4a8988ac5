package batch

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Used returns what a run uses of a list, and what it leaves out.
func Used(ix *dataset.Index, plan *dataset.Plan) report.DataList {
	seconds := func(row int32) float64 { return float64(ix.Rows[row].Samples) / float64(ix.SampleRate) }
	d := report.DataList{LeftOut: []report.LeftOut{}}
	for row := range ix.Rows {
		d.Clips++
		d.Seconds += seconds(int32(row))
	}
	long, wordy := report.LeftOut{File: report.ExcludedFile}, report.LeftOut{File: report.ExcludedFile}
	for _, e := range plan.Excluded() {
		l, reason := &long, fmt.Sprintf("longer than %.2f s", float64(e.Limit)/float64(ix.SampleRate))
		if e.Symbol == manifest.SymbolText {
			l, reason = &wordy, fmt.Sprintf("text of more than %d tokens", e.Limit)
		}
		l.Reason = reason
		l.Clips++
		l.Seconds += seconds(e.Row)
	}
	for _, l := range []report.LeftOut{long, wordy, {Reason: "cannot be used", File: report.QuarantineFile, Clips: len(ix.Rejected)}} {
		if l.Clips > 0 {
			d.LeftOut = append(d.LeftOut, l)
		}
	}
	d.Clips -= long.Clips + wordy.Clips
	d.Seconds -= long.Seconds + wordy.Seconds
	return d
}

// SumUp fills Usage. buckets and features are those of the run.
func (d *Data) SumUp(buckets []manifest.Bucket, f manifest.Features) {
	w := d.Train.Plan.Work(f)
	d.Usage = report.Data{Train: Used(d.Train.Index, d.Train.Plan), Buckets: buckets, Padding: report.Padding{Share: w.Padding(), EmptyRows: w.Empty()}}
	if d.Val != nil {
		v := Used(d.Val.Index, d.Val.Plan)
		d.Usage.Validation, d.Usage.Shared = &v, dataset.Shared(d.Train.Index, d.Val.Index)
	}
}
