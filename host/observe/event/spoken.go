package event

import "time"

// Spoken is published when the texts of an evaluation have been spoken, as far as they were: Incomplete says that some
// are missing.
type Spoken struct {
	Step int64
	// Folder has the files, Samples counts them.
	Folder     string
	Samples    int
	Time       time.Duration
	Incomplete bool
	// Utterances are the texts that were spoken, in order: the validation clips first, then the sentences of --samples.
	Utterances []Utterance
	// Measures are the means over the utterances that have a value, by name, as spoken.jsonl and --best-by name them.
	Measures []Value
}

// Utterance is a text that was spoken at an evaluation.
type Utterance struct {
	// Clip is true for a clip of the validation data, false for a sentence of --samples. Number counts from 1 in each.
	Clip   bool
	Number int
	// ID is that of the clip, or the place of the sentence: "samples.txt:3".
	ID, Text, Language string
	// File, Reference and Picture are paths in the run folder: the speech, the true recording and the two spectrograms.
	// The last two are empty without a true recording.
	File, Reference, Picture string
	// Seconds is the length of the speech, and Ended whether the model ended it, rather than the limit of its length.
	Seconds float64
	Ended   bool
	// Measures are those that exist for this utterance.
	Measures []Value
}

// Value is a number with its name.
type Value struct {
	Name  string
	Value float64
}

// Find returns the value of a name in a list, if it is there.
func Find(list []Value, name string) (float64, bool) {
	for _, v := range list {
		if v.Name == name {
			return v.Value, true
		}
	}
	return 0, false
}
