package batch

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// usage returns what the run uses of the list, and what it leaves out.
func (s *Split) usage() report.DataList {
	seconds := func(row int32) float64 { return float64(s.Index.Rows[row].Samples) / float64(s.Index.SampleRate) }
	d := report.DataList{LeftOut: []report.LeftOut{}}
	for row := range s.Index.Rows {
		d.Clips++
		d.Seconds += seconds(int32(row))
	}
	long, wordy := report.LeftOut{File: report.ExcludedFile}, report.LeftOut{File: report.ExcludedFile}
	for _, e := range s.Plan.Excluded() {
		l := &long
		l.Reason = fmt.Sprintf("longer than %.2f s", float64(e.Limit)/float64(s.Index.SampleRate))
		if e.Symbol == manifest.SymbolText {
			l = &wordy
			l.Reason = fmt.Sprintf("text of more than %d tokens", e.Limit)
		}
		l.Clips++
		l.Seconds += seconds(e.Row)
	}
	for _, l := range []report.LeftOut{long, wordy, {Reason: "cannot be used", File: report.QuarantineFile, Clips: len(s.Index.Rejected)}} {
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
	d.Usage = report.Data{Train: d.Train.usage(), Buckets: buckets, Padding: report.Padding{Share: w.Padding(), EmptyRows: w.Empty()}}
	if d.Val != nil {
		v := d.Val.usage()
		d.Usage.Validation, d.Usage.Shared = &v, dataset.Shared(d.Train.Index, d.Val.Index)
	}
}
