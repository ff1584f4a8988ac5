package summary

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// unseen returns a line if validation clips have speakers, and one if they have languages, that no training clip has.
func unseen(train, val *dataset.Index) (lines []string) {
	speakers, languages := dataset.Unseen(train, val)
	for _, missing := range []struct {
		what, kind string
		of         []dataset.Clips
	}{{"a speaker", "voices", speakers}, {"a language", "languages", languages}} {
		if len(missing.of) > 0 {
			lines = append(lines, fmt.Sprintf(
				"%s %s that no training clip has (%s): the validation loss is that of %s that the model does not learn",
				validationClips(missing.of), missing.what, clipNames(missing.of), missing.kind))
		}
	}
	return lines
}

func validationClips(of []dataset.Clips) string {
	n := 0
	for _, c := range of {
		n += c.Clips
	}
	if n == 1 {
		return "1 validation clip has"
	}
	return units.Count(n, "validation clip") + " have"
}

// mostNames limits the names in a message.
const mostNames = 5

// clipNames lists names with their clips.
func clipNames(of []dataset.Clips) string {
	var list []string
	for i, c := range of {
		if i == mostNames {
			list = append(list, fmt.Sprintf("and %d more", len(of)-mostNames))
			break
		}
		name := "no name"
		if c.Name != "" {
			name = visible.Short(c.Name, 100)
		}
		list = append(list, fmt.Sprintf("%s: %s", name, units.Count(c.Clips, "clip")))
	}
	return strings.Join(list, ", ")
}

// unused returns a line if the list names a language that the bundle takes no notice of. mixed is about several.
func unused(ix *dataset.Index, b *manifest.Bundle) []string {
	_, numbered := ix.Numbered(b.Inputs)
	tagged := b.Tokenizer != nil && dataset.Tagged(b.Tokenizer.Prefix)
	if len(ix.Languages) != 1 || ix.Languages[0] == dataset.DefaultLanguage || numbered != nil || tagged {
		return nil
	}
	return []string{fmt.Sprintf("the language %s of the list is not used: %s has no languages",
		visible.Short(ix.Languages[0], 100), b.Name)}
}

// unwritten returns a line if the rule letters is on, and does not know the letters of any language of the texts,
// although these have letters of Arabic script that it is about.
func unwritten(ix *dataset.Index, rules texts.Rules) []string {
	language, letters := rules.Letters()
	if !letters || language != "" {
		return nil
	}
	for _, l := range ix.Languages {
		if texts.Written(l) {
			return nil
		}
	}
	for i := range ix.Rows {
		for _, r := range ix.Rows[i].Text {
			if unicode.IsLetter(r) && texts.Alike(r) != "" {
				return []string{fmt.Sprintf("--normalize letters changes no letter: it knows none of the language %s "+
					"(name that of the texts, such as letters:fa, or in the list)",
					visible.Short(strings.Join(ix.Languages, ", "), 100))}
			}
		}
	}
	return nil
}

// mute returns a line for each setting about speech that changes nothing, or less than it says.
func mute(p *plan.Plan) (lines []string) {
	clips, asked := len(p.Samples.Clips), p.Config.SpokenClips
	if p.Config.Recognizer != "" && clips+len(p.Samples.Sentences) == 0 {
		lines = append(lines, "--recognizer is not used: the run speaks nothing")
	}
	if clips > 0 && clips < asked && !p.Samples.Optional {
		lines = append(lines, fmt.Sprintf("--spoken-clips %d: the validation data has only %s that can be spoken",
			asked, units.Count(clips, "clip")))
	}
	return lines
}
