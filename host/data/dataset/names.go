package dataset

import "github.com/xtts-host/xtts-host/shared/manifest"

// Numbered returns the names that the tensors hold by number: speakers, languages, or neither.
func (ix *Index) Numbered(tensors []manifest.TensorSpec) (speakers, languages []string) {
	for _, t := range tensors {
		switch t.Name {
		case "speaker_ids":
			speakers = ix.Speakers
		case "language_ids":
			languages = ix.Languages
		}
	}
	return speakers, languages
}
