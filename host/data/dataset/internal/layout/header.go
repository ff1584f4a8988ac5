package layout

import (
	"slices"
	"strings"
	"unicode"
)

// The names of columns and keys, the more specific first. Letters count without case; "-" and " " are "_".
var (
	pathNames = []string{
		"audio_filepath", "audio_file", "audio_path", "audio_file_path", "wav_filename", "wav_file", "wav_path",
		"wav_filepath", "file_name", "filename", "filepath", "file_path", "audio_filename", "path", "audio", "wav",
		"file", "sound", "clip", "recording", "location",
	}
	idNames = []string{
		"id", "clip_id", "file_id", "wav_id", "audio_id", "utterance_id", "utt_id", "utt", "uid", "segment_id",
		"wav_name", "name", "key",
	}
	// normalNames are texts that are written as they are spoken.
	normalNames = []string{
		"normalized_text", "text_normalized", "normalised_text", "text_normalised", "normalized_transcription",
		"normalized_transcript", "normalized_sentence", "norm_text", "text_norm", "normalized", "clean_text",
		"cleaned_text",
	}
	textNames = []string{
		"text", "transcription", "transcript", "sentence", "transcriptions", "original_text", "raw_text",
		"raw_transcription", "utterance_text", "script", "spoken_text", "words", "txt",
	}

	speakerNames = []string{
		"speaker", "speaker_name", "speaker_id", "client_id", "spk", "spk_id", "spk_name", "speakerid", "voice",
		"voice_id", "reader", "reader_id",
	}
	languageNames = []string{"language", "lang", "locale", "language_code", "lang_code", "lang_id", "language_id"}
	// otherNames are columns of known lists that are not used.
	otherNames = []string{
		"duration", "length", "emotion", "emotion_name", "age", "gender", "accent", "accents", "up_votes", "down_votes",
		"variant", "segment", "sentence_id", "sentence_domain", "split", "sampling_rate", "sample_rate", "num_samples",
		"frames", "phonemes", "label", "topic", "style",
	}
)

func plainName(s string) string {
	s = strings.ToLower(strings.Trim(strings.TrimSpace(strings.TrimPrefix(s, "\ufeff")), `"'`))
	return strings.NewReplacer("-", "_", " ", "_").Replace(s)
}

// known reports whether a name is one of any column.
func known(name string) bool {
	for _, names := range [][]string{
		pathNames, idNames, normalNames, textNames, speakerNames, languageNames, otherNames,
	} {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// pick returns the place of the first of names that a header has, and how many it has.
func pick(header, names []string) (at, n int) {
	at = -1
	for _, name := range names {
		if i := slices.Index(header, name); i >= 0 {
			if n++; at < 0 {
				at = i
			}
		}
	}
	return at, n
}

// meaning is which columns of a header are what; -1 for none.
type meaning struct {
	key, text, normal, speaker, language int
	keyRole                              Role
	texts                                int      // columns that may be the raw text
	unknown                              []string // names of columns that have no known name
}

func meaningOf(header []string) (m meaning) {
	m.keyRole = Path
	if m.key, _ = pick(header, pathNames); m.key < 0 {
		m.key, _ = pick(header, idNames)
		m.keyRole = Clip
	}
	m.text, m.texts = pick(header, textNames)
	m.normal, _ = pick(header, normalNames)
	m.speaker, _ = pick(header, speakerNames)
	m.language, _ = pick(header, languageNames)
	for _, name := range header {
		if !known(name) {
			m.unknown = append(m.unknown, name)
		}
	}
	return m
}

// roles returns the roles of the columns; text is the column of the text.
func (m meaning) roles(n, text int) []Role {
	roles := make([]Role, n)
	for at, r := range map[int]Role{m.speaker: Speaker, m.language: Language, m.key: m.keyRole, text: Text} {
		if at >= 0 {
			roles[at] = r
		}
	}
	return roles
}

// isHeader reports whether a line has the names of columns: at least two that are known, one of them that of a clip or
// of a text.
func isHeader(names []string) bool {
	n := 0
	for _, name := range names {
		if known(name) {
			n++
		}
	}
	m := meaningOf(names)
	return len(names) > 1 && n >= 2 && (m.key >= 0 || m.text >= 0 || m.normal >= 0)
}

// likeNames reports whether fields could be names of columns: single words that begin with a letter.
func likeNames(fields []string) bool {
	for _, f := range fields {
		f = strings.TrimSpace(f)
		if f == "" || len(f) > 40 || !unicode.IsLetter([]rune(f)[0]) || strings.ContainsFunc(f, func(r rune) bool {
			return !(r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r))
		}) {
			return false
		}
	}
	return len(fields) > 1
}
