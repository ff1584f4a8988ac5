// Package measured names the measures of speech for programs and for people, in one order: lines, tables, pages and
// reports show them alike. docs/speech-measures.md defines them.
//
//	m := measured.Of("wer")
//	m.Say(0.12) // "word errors 12 %"
package measured

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// The names of the measures.
const (
	LengthRatio       = "length_ratio"
	MCD               = "mcd_db"
	F0Cents           = "f0_cents"
	VoicingError      = "voicing_error"
	SpeakerSimilarity = "speaker_similarity"
	WER               = "wer"
	CER               = "cer"
	Repeated          = "repeated"
	Silence           = "silence"
)

// Better says which of two values of a measure is better.
type Better int

const (
	Lower Better = iota
	Higher
	NearOne
	// Neither is that of a measure by which speech cannot be compared.
	Neither
)

// String says which values are better.
func (b Better) String() string { return [...]string{"lower", "higher", "near 1", "neither"}[b] }

// Measure is a measure of speech.
type Measure struct {
	Name, Title string
	Unit        string // after a space; "" for none, and "%" for a share, which is shown as percents
	Better      Better
	Brief       bool // shown where there is room for some

	places int // after the point; as many as needed for a measure that is not known
}

// All are the measures, in the order in which they are shown.
var All = []Measure{
	{LengthRatio, "length ratio", "", NearOne, true, 2},
	{MCD, "MCD", "dB", Lower, true, 1},
	{F0Cents, "pitch error", "cents", Lower, true, 0},
	{VoicingError, "voicing error", "%", Lower, false, 0},
	{SpeakerSimilarity, "speaker similarity", "", Higher, true, 2},
	{WER, "word errors", "%", Lower, true, 0},
	{CER, "character errors", "%", Lower, true, 0},
	{Repeated, "repeated", "%", Lower, true, 0},
	{Silence, "silence", "%", Neither, true, 0}, // a voice is no better for less of it
}

// Judging are the names of the measures by which speech can be compared.
func Judging() (names []string) {
	for _, m := range All {
		if m.Better != Neither {
			names = append(names, m.Name)
		}
	}
	return names
}

// Place is where a measure is in All; those that are not known follow.
func Place(name string) int {
	if i := slices.IndexFunc(All, func(m Measure) bool { return m.Name == name }); i >= 0 {
		return i
	}
	return len(All)
}

// Compare puts names in the order of All. Those that are not known follow in that of their letters.
func Compare(a, b string) int { return cmp.Or(cmp.Compare(Place(a), Place(b)), cmp.Compare(a, b)) }

// Of returns a measure. One that is not known has its name as the title.
func Of(name string) Measure {
	if i := Place(name); i < len(All) {
		return All[i]
	}
	return Measure{Name: name, Title: name, places: -1}
}

// Figure writes a value with its unit: "6.1 dB". The value of a stranger may be any.
func (m Measure) Figure(v float64) string {
	switch {
	case math.IsNaN(v), math.Abs(v) >= 1e15, m.Unit == "%" && v < 0:
		return "-"
	case m.Unit == "%":
		return units.Percent(v)
	case m.places < 0:
		return units.Number(v)
	case m.Unit == "":
		return fmt.Sprintf("%.*f", m.places, v)
	}
	return fmt.Sprintf("%.*f %s", m.places, v, m.Unit)
}

// Say writes a value with its title: "MCD 6.1 dB".
func (m Measure) Say(v float64) string { return m.Title + " " + m.Figure(v) }

// Judged returns a number that is lower the better a value is. That of a ratio is its distance from 1, as a magnitude
// of the natural logarithm.
func (m Measure) Judged(v float64) float64 {
	switch m.Better {
	case Higher:
		return -v
	case NearOne:
		return math.Abs(math.Log(v))
	}
	return v
}
