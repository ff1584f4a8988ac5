package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
)

// Spoken describes what a run speaks at its evaluations.
type Spoken struct {
	Folder    string `json:"folder"`    // in the run folder
	Clips     int    `json:"clips"`     // of the validation data
	Sentences int    `json:"sentences"` // of the list, which an evaluation speaks unless it is stopped
	// Steps are those of the evaluations of the whole run that have spoken a text.
	Steps []int64 `json:"steps"`
	// Files counts the texts that they have spoken, also those whose files --keep-media has removed.
	Files int `json:"files"`
	// Skipped counts the evaluations of this process that were not spoken, to save time.
	Skipped int `json:"skipped"`
	// Last is the folder of the last one, in the run folder, and LastFiles how many texts it has spoken.
	Last      string `json:"last,omitempty"`
	LastFiles int    `json:"last_files,omitempty"`
	// Incomplete counts the evaluations of this process of which samples are missing.
	Incomplete int `json:"incomplete"`
	// CompleteStep is the step of the last evaluation of the run that has spoken all texts, 0 without one. Cut counts
	// the texts that were cut there.
	CompleteStep int64 `json:"complete_step"`
	Cut          int   `json:"cut"`
	// Measures are the means over the texts of an evaluation that has spoken all of them, by their names.
	Measures map[string]SpokenMeasure `json:"measures"`
}

// SpokenMeasure is a measure of the speech of the whole run: the mean of the last evaluation that has spoken all texts,
// null if it has none, and the best one, which a measure that says nothing about the quality does not have.
type SpokenMeasure struct {
	Last     Float  `json:"last"`
	LastStep int64  `json:"last_step"`
	Best     *Float `json:"best,omitempty"`
	BestStep int64  `json:"best_step,omitempty"`
}

// texts is the number of texts of an evaluation.
func (s *Spoken) texts() int { return s.Clips + s.Sentences }

// what names what an evaluation speaks: "2 clips and 3 sentences".
func (s *Spoken) what() string {
	switch {
	case s.Clips == 0:
		return units.Count(s.Sentences, "sentence")
	case s.Sentences == 0:
		return units.Count(s.Clips, "clip")
	}
	return units.Count(s.Clips, "clip") + " and " + units.Count(s.Sentences, "sentence")
}

// spoken writes the lines about what was spoken.
func (t *table) spoken(s *Spoken) {
	if s == nil {
		return
	}
	at, text, unit := units.Count(len(s.Steps), "evaluation"), "", "text"
	if s.Clips == 0 {
		unit = "sentence"
	}
	switch {
	case len(s.Steps) == 0:
		text = "none of the " + s.what()
	case s.Files == s.texts()*len(s.Steps):
		text = fmt.Sprintf("%s at %s, the last in %s", s.what(), at, s.Last)
	default:
		text = fmt.Sprintf("%s at %s of %d each, the last in %s with %d", units.Count(s.Files, unit), at, s.texts(),
			s.Last, s.LastFiles)
	}
	if s.Incomplete > 0 {
		text += fmt.Sprintf("; %d not complete: log.jsonl says why", s.Incomplete)
	}
	if s.Skipped > 0 {
		text += fmt.Sprintf("; %s without speech, to save time (--spoken-clips)",
			units.Count(s.Skipped, "evaluation"))
	}
	t.row("spoken", text)
	if list := s.figures(); len(list) > 0 {
		t.row("speech", fmt.Sprintf("at step %d: %s", s.CompleteStep, strings.Join(list, ", ")))
	}
}

// figures lists what the last evaluation that has spoken all texts is like, beside the best ones.
func (s *Spoken) figures() (list []string) {
	if s.Cut > 0 {
		list = append(list, fmt.Sprintf("cut %d of %d", s.Cut, s.texts()))
	}
	for _, m := range measured.All {
		v, ok := s.Measures[m.Name]
		if !ok || !m.Brief {
			continue
		}
		text := m.Say(float64(v.Last))
		if v.Best != nil && v.BestStep != v.LastStep {
			text += fmt.Sprintf(" (best %s at step %d, %s is better)", m.Figure(float64(*v.Best)), v.BestStep, m.Better)
		}
		list = append(list, text)
	}
	return list
}

// spokenShare is the largest share of the wall time that speaking may take without advice.
const spokenShare = 0.1

// spokenAdvice says if speaking took long; "" if not.
func (r *Report) spokenAdvice() string {
	s := r.TimeS.Speaking
	if s <= spokenShare*r.WallS || r.Spoken == nil {
		return ""
	}
	fewer := "--spoken-clips 0 speaks no clips"
	if r.Spoken.Clips == 0 {
		fewer = "a shorter --samples speaks less"
	}
	return fmt.Sprintf("Speaking took %s of %s: %s, and a larger --eval-every evaluates less often.", units.Duration(
		time.Duration(s*float64(time.Second))), units.Duration(time.Duration(r.WallS*float64(time.Second))), fewer)
}

// mostUtterances bounds the texts that the line of an evaluation lists.
const mostUtterances = 4

// spokenLine is the line of what an evaluation has spoken: "spoken 1: 1.4 s of 2.1, 2: 12.0 s, cut  MCD 6.1 dB".
// Measures that have no room in so many columns follow in another line.
func spokenLine(e *event.Spoken, columns int) string {
	var list []string
	sentences := false
	for _, u := range e.Utterances {
		if len(list) == mostUtterances {
			list = append(list, fmt.Sprintf("%d more", len(e.Utterances)-mostUtterances))
			break
		}
		text := fmt.Sprintf("%d: %.1f s", u.Number, u.Seconds)
		if !u.Clip && !sentences {
			text = "sentence " + text
			sentences = true
		}
		if ratio, _ := event.Find(u.Measures, measured.LengthRatio); ratio > 0 {
			text += fmt.Sprintf(" of %.1f", u.Seconds/ratio)
		}
		if !u.Ended {
			text += ", cut"
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		return ""
	}
	line := []string{"spoken " + strings.Join(list, ", ")}
	for _, m := range measured.All {
		v, ok := event.Find(e.Measures, m.Name)
		said := m.Name == measured.LengthRatio || m.Name == measured.Repeated && v == 0
		if ok && m.Brief && !said {
			line = append(line, m.Say(v))
		}
	}
	return wrap(line, columns)
}

// wrap joins parts with two spaces, and begins another line with two spaces where the next part has no room.
func wrap(parts []string, columns int) string {
	text, used := "", 0
	for i, part := range parts {
		gap := "  "
		if width := fold.Width(part); i == 0 {
			gap, used = "", width
		} else if used += 2 + width; used > columns {
			gap, used = "\n  ", 2+width
		}
		text += gap + part
	}
	return text
}
