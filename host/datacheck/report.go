package datacheck

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/dataset"
)

// Report is what the command finds (docs/data-check.md).
type Report struct {
	List     string     `json:"list"`
	Bundle   string     `json:"bundle"`
	Lines    int        `json:"lines"`
	Usable   Amount     `json:"usable"`
	Unusable []Unusable `json:"unusable"`
	Allowed  int        `json:"allowed"` // unusable lines
	Trained  Trained    `json:"trained"`
	Measures
	Composition
	Findings
}

// Amount is clips and their length.
type Amount struct {
	Clips   int     `json:"clips"`
	Seconds float64 `json:"seconds"`
}

func (a *Amount) add(seconds float64) { a.Clips, a.Seconds = a.Clips+1, a.Seconds+seconds }

// Line names a line of the list.
type Line struct {
	Line int    `json:"line"`
	ID   string `json:"id"`
}

// Unusable is a line that a run leaves out.
type Unusable struct {
	Line
	Path   string `json:"path"`
	Stage  string `json:"stage"` // "index" or "decode"
	Reason string `json:"reason"`
}

// Trained is what a run with the default settings trains on.
type Trained struct {
	Amount
	ClipShare   float64   `json:"clip_share"` // of those usable
	SecondShare float64   `json:"second_share"`
	Buckets     int       `json:"buckets"`
	Padding     float64   `json:"padding"`
	LeftOut     []LeftOut `json:"left_out"`
}

// LeftOut is clips that no bucket holds.
type LeftOut struct {
	Reason string `json:"reason"`
	Amount
}

// Measures are the distributions over the usable clips.
type Measures struct {
	Duration Distribution `json:"duration"`              // seconds
	Rate     Distribution `json:"characters_per_second"` // of the text
	Level    Distribution `json:"level_db"`              // RMS, of full scale
	Silence  float64      `json:"silence"`               // share of silent frames
}

// Composition is who speaks, in what form.
type Composition struct {
	Speakers    []Group `json:"speakers"`
	Languages   []Group `json:"languages"`
	SampleRates []Group `json:"sample_rates"`
	Channels    []Group `json:"channels"`
}

// Group is the clips of a speaker, a language, a sample rate or a number of channels.
type Group struct {
	Name string `json:"name"`
	Amount
}

// Findings are lines that can be used and may still be mistakes.
type Findings struct {
	UnknownCharacters []Character `json:"unknown_characters"`
	SameAudio         [][]Line    `json:"same_audio"`
	SameText          [][]Line    `json:"same_text"`
	Clipped           []Clipped   `json:"clipped"`
	LongSilence       []Silence   `json:"long_silence"`
	OddRate           []OddRate   `json:"odd_rate"`
}

// Character is a character of the texts that is not in the tokenizer's vocabulary.
type Character struct {
	Char  string `json:"char"`
	Code  string `json:"code"`
	Count int    `json:"count"`
	First string `json:"first"`
	As    string `json:"as"` // "unknown" or "bytes"
}

// Clipped is a clip with samples at full scale.
type Clipped struct {
	Line
	Samples int `json:"samples"`
}

// Silence is a clip with much silence at an end.
type Silence struct {
	Line
	Leading  float64 `json:"leading"`
	Trailing float64 `json:"trailing"`
}

// OddRate is a clip with too much or too little text for its length.
type OddRate struct {
	Line
	Rate float64 `json:"characters_per_second"`
}

// Rules for findings (docs/data-check.md).
const (
	longSilence = 1.0 // seconds at one end
	oddFactor   = 2   // from the median, at least
	oddSpread   = 4   // robust standard deviations of the logarithm, at least
)

// newReport sums up what was measured of the rows.
func newReport(ix *dataset.Index, clips []clip) *Report {
	r := &Report{
		List: filepath.Join(ix.Dir, ix.List), Lines: len(ix.Rows) + len(ix.Rejected), Unusable: []Unusable{},
		Findings: Findings{UnknownCharacters: characters(ix), Clipped: []Clipped{}, LongSilence: []Silence{}, OddRate: []OddRate{}},
	}
	for _, b := range ix.Rejected {
		r.Unusable = append(r.Unusable, Unusable{Line{b.Line, b.ID}, b.Path, "index", b.Reason})
	}
	var durations, rates, levels []float64
	var usable []int
	silent := 0.0
	for i := range clips {
		row, c := &ix.Rows[i], &clips[i]
		line := Line{row.Line, row.ID}
		if c.reason != "" {
			r.Unusable = append(r.Unusable, Unusable{line, row.Path, "decode", c.reason})
			continue
		}
		seconds := float64(row.Samples) / float64(ix.SampleRate)
		usable = append(usable, i)
		r.Usable.add(seconds)
		durations, levels = append(durations, seconds), append(levels, c.level)
		rates = append(rates, float64(utf8.RuneCountInString(row.Text))/seconds)
		silent += c.silent * seconds
		if c.clipped > 0 {
			r.Clipped = append(r.Clipped, Clipped{line, c.clipped})
		}
		if max(c.leading, c.trailing) > longSilence {
			r.LongSilence = append(r.LongSilence, Silence{line, c.leading, c.trailing})
		}
	}
	slices.SortStableFunc(r.Unusable, func(a, b Unusable) int { return cmp.Compare(a.Line.Line, b.Line.Line) })
	r.Duration, r.Rate, r.Level = newDistribution(durations), newDistribution(rates), newDistribution(levels)
	r.Measures.Silence = share(silent, r.Usable.Seconds)
	for n, i := range odd(rates) {
		if i {
			r.OddRate = append(r.OddRate, OddRate{Line{ix.Rows[usable[n]].Line, ix.Rows[usable[n]].ID}, rates[n]})
		}
	}
	r.SameAudio = same(ix, usable, func(i int) string { return string(clips[i].hash[:]) })
	r.SameText = same(ix, usable, func(i int) string { return ix.Rows[i].Text })
	r.Composition = compose(ix, usable)
	return r
}

func characters(ix *dataset.Index) []Character {
	as := "unknown"
	if ix.ByteFallback {
		as = "bytes"
	}
	list := []Character{}
	for _, u := range ix.Unknown {
		list = append(list, Character{string(u.Char), fmt.Sprintf("U+%04X", u.Char), u.Count, u.Place, as})
	}
	slices.SortStableFunc(list, func(a, b Character) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// same returns the groups of rows with the same key, in the order of their first lines.
func same(ix *dataset.Index, rows []int, key func(row int) string) [][]Line {
	first := map[string]int{} // row, or minus the number of the group
	groups := [][]Line{}
	for _, i := range rows {
		k := key(i)
		at, ok := first[k]
		if !ok {
			first[k] = i + 1
			continue
		}
		if at > 0 {
			groups = append(groups, []Line{{ix.Rows[at-1].Line, ix.Rows[at-1].ID}})
			at = -len(groups)
			first[k] = at
		}
		groups[-at-1] = append(groups[-at-1], Line{ix.Rows[i].Line, ix.Rows[i].ID})
	}
	slices.SortFunc(groups, func(a, b []Line) int { return cmp.Compare(a[0].Line, b[0].Line) })
	return groups
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

// odd reports which values are far from the others: a factor of oddFactor from the median, and oddSpread robust standard
// deviations of the logarithm. A robust standard deviation is 1.4826 times the median of the distances from the median
// (Hampel, "The influence curve and its role in robust estimation", 1974).
func odd(values []float64) []bool {
	if len(values) == 0 {
		return nil
	}
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	center := median(logs)
	distances := make([]float64, len(logs))
	for i, l := range logs {
		distances[i] = math.Abs(l - center)
	}
	limit := max(math.Log(oddFactor), oddSpread*1.4826*median(distances))
	out := make([]bool, len(values))
	for i, d := range distances {
		out[i] = d > limit
	}
	return out
}
