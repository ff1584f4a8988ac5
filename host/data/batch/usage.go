package batch

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// usedOf returns what a run uses of a list, and what it leaves out.
func usedOf(ix *dataset.Index, plan *dataset.Plan) report.DataList {
	seconds := func(row int32) float64 { return float64(ix.Rows[row].Samples) / float64(ix.SampleRate) }
	d := report.DataList{LeftOut: []report.LeftOut{}}
	for row := range ix.Rows {
		d.Clips++
		d.Seconds += seconds(int32(row))
	}
	counted := append([]string{"samples", "tokens"}, ix.Columns.Counted()...) // the order of the reasons
	left := make([]report.LeftOut, len(counted))
	for _, e := range plan.Excluded() {
		l := &left[slices.Index(counted, e.Of)]
		switch e.Of {
		case "samples":
			l.Reason = fmt.Sprintf("longer than %.2f s", float64(e.Limit)/float64(ix.SampleRate))
		case "tokens":
			l.Reason = fmt.Sprintf("text of more than %d tokens", e.Limit)
		default:
			l.Reason = fmt.Sprintf("more than %d %s", e.Limit, e.Of)
		}
		l.File = rundir.ExcludedFile
		l.Clips++
		l.Seconds += seconds(e.Row)
	}
	for _, l := range append(left, report.LeftOut{
		Reason: "cannot be used", File: rundir.QuarantineFile, Clips: len(ix.Rejected),
	}) {
		if l.Clips > 0 {
			d.LeftOut = append(d.LeftOut, l)
		}
	}
	for _, l := range left {
		d.Clips -= l.Clips
		d.Seconds -= l.Seconds
	}
	return d
}

// SumUp fills Usage. buckets and features are those of the run.
func (d *Data) SumUp(buckets []manifest.Bucket, f manifest.Features) {
	w := d.Train.Plan.Work(f)
	d.Usage = report.Data{
		ValShare: d.Share, Lists: []report.List{ListOf(d.Train.Index)}, Train: usedOf(d.Train.Index, d.Train.Plan),
		Buckets: buckets, Padding: report.Padding{Share: w.Padding(), EmptyRows: w.Empty()},
	}
	if d.Val != nil {
		d.Usage.Lists = append(d.Usage.Lists, ListOf(d.Val.Index))
		v := usedOf(d.Val.Index, d.Val.Plan)
		d.Usage.Validation, d.Usage.Shared = &v, dataset.Shared(d.Train.Index, d.Val.Index)
	}
}
