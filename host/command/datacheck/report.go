package datacheck

import (
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Report is what the command finds (docs/data-check.md).
type Report struct {
	List     string      `json:"list"`
	Layout   report.List `json:"layout"`
	Bundle   string      `json:"bundle"`
	Lines    int         `json:"lines"`
	Usable   Amount      `json:"usable"`
	Unusable []Unusable  `json:"unusable"`
	Allowed  int         `json:"allowed"` // unusable lines
	Trained  Trained     `json:"trained"`
	Excluded []Unusable  `json:"excluded"`
	// Validation is what a run evaluates on; nil for nothing.
	Validation *Validation `json:"validation,omitempty"`
	// LanguagesUsed says whether the model takes the languages of texts.
	LanguagesUsed bool `json:"languages_used"`
	// LanguagesNamed says whether a line of the list names the language of its text: else it is the default.
	LanguagesNamed bool `json:"languages_named"`

	remedy      string // of the unusable lines
	noLanguages string // what to say if none does
	Measures
	Composition
	Findings
	Texts Texts `json:"texts"`

	empty error // no line can be used
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
	Stage  string `json:"stage"` // "index", "decode", or "plan" for a row that no bucket holds
	Reason string `json:"reason"`
}

// Trained is what a run with the default settings trains on, as its start says it.
type Trained struct {
	report.DataList
	ClipShare   float64 `json:"clip_share"` // of the clips of the index
	SecondShare float64 `json:"second_share"`
	Buckets     int     `json:"buckets"`
	Padding     float64 `json:"padding"`

	fit string // how well the buckets fit
}

// Measures are the distributions over the usable clips, and of samples over those of them that are trained on.
type Measures struct {
	Duration Distribution `json:"duration"`              // seconds
	Rate     Distribution `json:"characters_per_second"` // of the text
	Level    Distribution `json:"level_db"`              // RMS, of full scale
	Silence  float64      `json:"silence"`               // share of silent frames
	Steps    []Steps      `json:"steps,omitempty"`       // by lengths input
}

// Steps are the lengths of columns of the list that have one lengths input.
type Steps struct {
	Lengths string       `json:"lengths"`
	Columns []string     `json:"columns"`
	Steps   Distribution `json:"steps"` // of a row
	Rate    Distribution `json:"per_second"`
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
	IgnoredKeys       []dataset.IgnoredKey `json:"ignored_keys"`
	UnknownCharacters []Character          `json:"unknown_characters"`
	SameAudio         [][]Line             `json:"same_audio"`
	SameText          [][]Line             `json:"same_text"`
	Clipped           []Clipped            `json:"clipped"`
	LongSilence       []Silence            `json:"long_silence"`
	OddRate           []OddRate            `json:"odd_rate"`
	OddRecordings     []OddRecording       `json:"odd_recordings"`
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

// OddRecording is a clip of a file with something wrong, which is read all the same.
type OddRecording struct {
	Line
	Remark string `json:"remark"`
}

// OddRate is a clip with too much or too little text for its length.
type OddRate struct {
	Line
	Rate float64 `json:"characters_per_second"`
}
