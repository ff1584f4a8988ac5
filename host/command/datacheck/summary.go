package datacheck

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// newReport sums up what was measured of the rows. The plan is that of a run.
func newReport(ix *dataset.Index, plan *dataset.Plan, clips []clip) *Report {
	r := &Report{
		List: filepath.Join(ix.Dir, ix.List), Lines: len(ix.Rows) + len(ix.Rejected), Unusable: []Unusable{},
		Excluded: []Unusable{},
		Findings: Findings{
			IgnoredKeys: append([]dataset.IgnoredKey{}, ix.Ignored...), UnknownCharacters: characters(ix),
			Clipped: []Clipped{}, LongSilence: []Silence{}, OddRate: []OddRate{}, OddRecordings: []OddRecording{},
		},
	}
	for _, b := range ix.Rejected {
		r.Unusable = append(r.Unusable, Unusable{Line{b.Line, b.ID}, b.Path, "index", b.Reason})
	}
	r.Layout, r.remedy = batch.ListOf(ix), ix.Remedy(ix.Rejected)
	if plan == nil { // no line can be used
		r.Trained.LeftOut, r.SameAudio, r.SameText, r.Composition = []report.LeftOut{}, [][]Line{}, [][]Line{},
			compose(ix, nil)
		return r
	}
	for _, e := range plan.Excluded() {
		row := &ix.Rows[e.Row]
		r.Excluded = append(r.Excluded, Unusable{Line{row.Line, row.ID}, row.Path, "plan", ix.TooLong(e)})
	}
	usable, read := r.rows(ix, clips)
	slices.SortStableFunc(r.Unusable, func(a, b Unusable) int { return cmp.Compare(a.Line.Line, b.Line.Line) })
	r.SameAudio = same(ix, read, func(i int) [16]byte { return clips[i].hash })
	r.SameText = same(ix, usable, func(i int) string { return ix.Rows[i].Text })
	r.Texts = textsOf(ix, usable)
	r.Composition = compose(ix, usable)
	r.Steps = steps(ix, usable)
	return r
}

// steps counts the steps of the rows.
func steps(ix *dataset.Index, rows []int) (out []Steps) {
	for _, s := range ix.Columns.Sequences("") {
		at := slices.IndexFunc(out, func(had Steps) bool { return had.Lengths == s.Lengths })
		if at >= 0 {
			out[at].Columns = append(out[at].Columns, s.Column)
			continue
		}
		counts, rates := make([]float64, len(rows)), make([]float64, len(rows))
		for k, i := range rows {
			row := &ix.Rows[i]
			counts[k] = float64(row.Values[s.Place].Length)
			rates[k] = counts[k] * float64(ix.SampleRate) / float64(row.Samples)
		}
		out = append(out, Steps{s.Lengths, []string{s.Column}, newDistribution(counts), newDistribution(rates)})
	}
	return out
}

// rows sums up the measures, and returns the rows that can be used, and those of them that were read.
func (r *Report) rows(ix *dataset.Index, clips []clip) (usable, read []int) {
	var durations, rates, levels []float64
	silent, total := 0.0, 0.0
	for i := range clips {
		row, c := &ix.Rows[i], &clips[i]
		line, seconds := Line{row.Line, row.ID}, float64(row.Samples)/float64(ix.SampleRate)
		if c.reason != "" {
			r.Unusable = append(r.Unusable, Unusable{line, row.Path, "decode", c.reason})
			continue
		}
		usable = append(usable, i)
		if row.Remarks != 0 {
			r.OddRecordings = append(r.OddRecordings, OddRecording{line, row.Remarks.String()})
		}
		r.Usable.add(seconds)
		durations, rates = append(durations, seconds), append(rates, float64(utf8.RuneCountInString(row.Text))/seconds)
		if !c.read {
			continue
		}
		read, levels = append(read, i), append(levels, c.level)
		silent, total = silent+c.silent*seconds, total+seconds
		if c.clipped > 0 {
			r.Clipped = append(r.Clipped, Clipped{line, c.clipped})
		}
		if max(c.leading, c.trailing) > longSilence {
			r.LongSilence = append(r.LongSilence, Silence{line, c.leading, c.trailing})
		}
	}
	r.Duration, r.Rate, r.Level = newDistribution(durations), newDistribution(rates), newDistribution(levels)
	r.Measures.Silence = share(silent, total)
	for n, odd := range odd(rates) {
		if odd {
			row := &ix.Rows[usable[n]]
			r.OddRate = append(r.OddRate, OddRate{Line{row.Line, row.ID}, rates[n]})
		}
	}
	return usable, read
}

// compose counts the rows by speaker, language, rate and channels, the most seconds first.
func compose(ix *dataset.Index, rows []int) Composition {
	count := func(name func(r *dataset.Row) string) []Group {
		amounts := map[string]*Amount{}
		for _, i := range rows {
			n := name(&ix.Rows[i])
			if amounts[n] == nil {
				amounts[n] = &Amount{}
			}
			amounts[n].add(float64(ix.Rows[i].Samples) / float64(ix.SampleRate))
		}
		groups := []Group{}
		for n, a := range amounts {
			groups = append(groups, Group{n, *a})
		}
		slices.SortFunc(groups, func(a, b Group) int {
			return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name))
		})
		return groups
	}
	return Composition{
		Speakers:    count(func(r *dataset.Row) string { return ix.Speakers[r.SpeakerID] }),
		Languages:   count(func(r *dataset.Row) string { return ix.Languages[r.LanguageID] }),
		SampleRates: count(func(r *dataset.Row) string { return fmt.Sprintf("%d Hz", r.FileRate) }),
		Channels:    count(func(r *dataset.Row) string { return fmt.Sprint(r.FileChannels) }),
	}
}

func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}
