package samples

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/measured"
)

// TestReport: the evaluations that spoke are counted by their lines, also after --keep-media has removed their files.
// The last means are those of the last evaluation that has spoken all texts, without what it lacks.
func TestReport(t *testing.T) {
	r := newRun(t)
	s := r.openClips(t, 2)
	for step := range int64(3) {
		s.Speak(step + 1)
	}
	if err := os.RemoveAll(filepath.Join(r.folder(), "step-000001")); err != nil {
		t.Fatal(err)
	}
	delete(s.lines, line{step: 3, clip: true, i: 2}) // it was stopped
	for i := range 2 {
		key := line{step: 2, clip: true, i: i + 1}
		l := s.lines[key]
		l.Ended = i > 0
		delete(l.Measures, measured.VoicingError)
		s.lines[key] = l
	}
	got := s.Report()
	if !slices.Equal(got.Steps, []int64{1, 2, 3}) || got.Files != 6 {
		t.Errorf("spoken at %v, %d texts", got.Steps, got.Files)
	}
	if m := got.Measures[measured.LengthRatio]; got.CompleteStep != 2 || got.Cut != 1 || m.LastStep != 2 ||
		m.BestStep != 1 {
		t.Errorf("%+v", got)
	}
	if m := got.Measures[measured.VoicingError]; !math.IsNaN(float64(m.Last)) || m.LastStep != 2 {
		t.Errorf("a measure that the evaluation lacks is %+v", m)
	}
}
