package layout

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Keys are the names under which objects have what a clip needs.
type Keys struct{ Audio, Text, Speaker, Language string }

// Standard are the keys of docs/data.md.
var Standard = Keys{"audio_filepath", "text", "speaker", "language"}

// parseKeys reads "audio:file_name,text:sentence".
func parseKeys(list string) (Keys, error) {
	k := Standard
	for pair := range strings.SplitSeq(list, ",") {
		role, name, ok := strings.Cut(strings.TrimSpace(pair), ":")
		to := map[string]*string{
			"audio": &k.Audio, "text": &k.Text, "speaker": &k.Speaker, "language": &k.Language,
		}[role]
		if !ok || to == nil || name == "" {
			return k, hint.Errorf("for example keys=audio:file_name,text:sentence; also speaker and language",
				"%q names no key", pair)
		}
		*to = name
	}
	return k, nil
}

func (k Keys) String() string {
	var pairs []string
	for _, p := range [...]struct{ role, name, usual string }{
		{"audio", k.Audio, Standard.Audio}, {"text", k.Text, Standard.Text}, {"speaker", k.Speaker, Standard.Speaker},
		{"language", k.Language, Standard.Language},
	} {
		if p.name != p.usual {
			pairs = append(pairs, fmt.Sprintf("%s:%s", p.role, p.name))
		}
	}
	return strings.Join(pairs, ",")
}
