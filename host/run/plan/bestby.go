package plan

import (
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// bestByHash is the name of the measure among the hashes of a checkpoint, if it is not the loss.
const bestByHash = "best_by"

// BestBy is the measure by which evaluations are compared, "" for the loss.
func (p *Plan) BestBy() string {
	if p.Config.BestBy == report.ByLoss {
		return ""
	}
	return p.Config.BestBy
}

// checkBestBy refuses a name of --best-by that an evaluation of the run does not have.
func checkBestBy(d *Draft) error {
	name := d.BestBy()
	if name == "" {
		return nil
	}
	if d.Data.Val == nil {
		return hint.Errorf("name validation data with --val-data, or leave --best-by out",
			"--best-by %s compares evaluations, and the run has none", name)
	}
	known := slices.Concat([]string{report.ByLoss}, d.Bundle.Manifest.Metrics(), measures(d))
	if slices.Contains(known, name) {
		return nil
	}
	advice := hint.DidYouMean(name, known)
	if advice == "" {
		advice = "docs/schedules.md explains each measure"
	}
	if measure, ok := strings.CutPrefix(name, report.BySpoken); ok {
		switch known := slices.Contains(measured.Judging(), measure); {
		case len(d.Samples.Clips)+len(d.Samples.Sentences) == 0:
			advice = "measures of speech need a bundle that speaks, and --spoken-clips"
		case known && (measure == measured.WER || measure == measured.CER):
			return hint.Errorf("docs/speech-measures.md has an example",
				"--best-by %s needs --recognizer, a command that transcribes speech", name)
		case known && measure == measured.SpeakerSimilarity && len(d.Samples.Clips) > 0:
			return hint.Errorf("docs/speaking-graphs.md describes that graph",
				"--best-by %s: the bundle has no graph %s", name, manifest.GraphSpeaker)
		case known:
			advice = "it needs recordings to compare with: --spoken-clips"
		}
	}
	return hint.Errorf(advice, "--best-by %s: the evaluations of this run do not have it; they have %s", name,
		strings.Join(known, ", "))
}

// measures lists the measures of speech that evaluations of the run have.
func measures(d *Draft) (names []string) {
	s := &d.Samples
	if len(s.Clips)+len(s.Sentences) == 0 {
		return nil
	}
	for _, name := range measured.Judging() {
		has := len(s.Clips) > 0
		switch name {
		case measured.SpeakerSimilarity:
			has = d.Bundle.Manifest.Speaks(manifest.GraphSpeaker)
		case measured.Repeated:
			has = true
		case measured.WER, measured.CER:
			has = d.Config.Recognizer != ""
		}
		if has {
			names = append(names, report.BySpoken+name)
		}
	}
	return names
}
