package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
)

// TestSpokenLine: the line about the samples says how many sentences were spoken.
func TestSpokenLine(t *testing.T) {
	for want, s := range map[string]*Spoken{
		"":                            nil,
		"none of the 200 sentences\n": {Sentences: 200},
		"2 sentences at 3 evaluations, the last in " +
			"samples/step-000006\n": {
			Sentences: 2, Steps: []int64{2, 4, 6}, Files: 6, Last: "samples/step-000006", LastFiles: 2,
		},
		"403 sentences at 3 evaluations of 200 each, the last in samples/step-000006 with " +
			"3\n": {
			Sentences: 200, Steps: []int64{2, 4, 6}, Files: 403, Last: "samples/step-000006", LastFiles: 3,
		},
		"1 sentence at 1 evaluation of 2 each, the last in samples/step-000006 with 1; 1 not complete: log.jsonl " +
			"says " +
			"why\n": {
			Sentences: 2, Steps: []int64{6}, Files: 1, Last: "samples/step-000006", LastFiles: 1, Incomplete: 1,
		},
		"2 clips at 1 evaluation, the last in samples/step-000006; 9 evaluations without speech, to save time " +
			"(--spoken-clips)\n": {
			Clips: 2, Steps: []int64{6}, Files: 2, Last: "samples/step-000006", LastFiles: 2, Skipped: 9,
		},
	} {
		table := &table{room: 200}
		if table.spoken(s); strings.TrimPrefix(table.b.String(), "  spoken          ") != want {
			t.Errorf("%q, want %q", table.b.String(), want)
		}
	}
}

// TestSpeechLine: each figure is of one evaluation, which the line names, with what was cut and what is missing there,
// and says which values are better.
func TestSpeechLine(t *testing.T) {
	best := Float(411)
	table := &table{room: 200}
	table.spoken(&Spoken{
		Clips: 2, Steps: []int64{80, 240}, Files: 4, Last: "samples/step-000240", CompleteStep: 240, Cut: 2,
		Measures: map[string]SpokenMeasure{
			"length_ratio": {Last: 2.99, LastStep: 240},
			"f0_cents":     {Last: Float(math.NaN()), LastStep: 240, Best: &best, BestStep: 80},
		},
	})
	want := "at step 240: cut 2 of 2, length ratio 2.99, pitch error - (best 411 cents at step 80, lower is better)\n"
	if !strings.HasSuffix(table.b.String(), want) {
		t.Errorf("%s, want %s", table.b.String(), want)
	}
}

// TestSpokenAdvice: a run that speaks for more than a tenth of its time says so.
func TestSpokenAdvice(t *testing.T) {
	for speaking, want := range map[time.Duration]string{
		3 * time.Second:  "",
		34 * time.Second: "Speaking took 34 s of 40 s: --spoken-clips 0 speaks no clips, and a larger --eval-every",
	} {
		c := NewCollector(nil, Before{})
		if err := c.Take([]event.Event{&event.Work{Task: event.Speaking, Ended: true, Time: speaking}}); err != nil {
			t.Fatal(err)
		}
		r := &Report{Spoken: &Spoken{Clips: 2}}
		c.Complete(r, Measured{Began: time.Now(), Wall: 40 * time.Second})
		got := strings.Join(r.Verdict.Advice, "")
		if !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%v: %q", speaking, got)
		}
	}
}

// TestSpokenLineWraps: the line of an evaluation breaks between measures where it would be wider than the terminal.
func TestSpokenLineWraps(t *testing.T) {
	e := &event.Spoken{
		Utterances: []event.Utterance{
			{Clip: true, Number: 1, Seconds: 1.4, Ended: true,
				Measures: []event.Value{{Name: measured.LengthRatio, Value: 0.5}}},
			{Clip: true, Number: 2, Seconds: 12},
		},
		Measures: []event.Value{
			{Name: measured.WER, Value: 0.12}, {Name: measured.MCD, Value: 6.1}, {Name: measured.F0Cents, Value: 120},
			{Name: measured.SpeakerSimilarity, Value: 0.61}, {Name: measured.Silence, Value: 0.1},
		},
	}
	for columns, want := range map[int]string{
		200: "spoken 1: 1.4 s of 2.8, 2: 12.0 s, cut  MCD 6.1 dB  pitch error 120 cents  speaker similarity 0.61  " +
			"word errors 12 %  silence 10 %",
		80: "spoken 1: 1.4 s of 2.8, 2: 12.0 s, cut  MCD 6.1 dB  pitch error 120 cents\n" +
			"  speaker similarity 0.61  word errors 12 %  silence 10 %",
		73: "spoken 1: 1.4 s of 2.8, 2: 12.0 s, cut  MCD 6.1 dB  pitch error 120 cents\n" +
			"  speaker similarity 0.61  word errors 12 %  silence 10 %",
		30: "spoken 1: 1.4 s of 2.8, 2: 12.0 s, cut\n  MCD 6.1 dB\n  pitch error 120 cents\n" +
			"  speaker similarity 0.61\n  word errors 12 %\n  silence 10 %",
	} {
		if got := spokenLine(e, columns); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", columns, got, want)
		}
	}
}
