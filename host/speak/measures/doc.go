// Package measures tells in numbers how far speech is from the recording of the same text (docs/speech-measures.md has
// the formulas, their sources and what they are good for). Its functions are pure: equal samples have equal measures.
//
//	a, err := measures.NewAnalyzer(22050)
//	truth, err := a.Analyze(recording)
//	heard, err := a.Analyze(speech)
//	c := measures.Compare(truth, heard) // c.MCD in dB, c.F0Cents, c.VoicingError
//	measures.Repeated(heard)            // the share that repeats itself
//
// All numbers are f64 but the samples and the log-mel spectrogram, which are f32.
package measures
