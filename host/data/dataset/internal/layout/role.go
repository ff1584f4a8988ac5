package layout

import (
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Role is what a column is.
type Role uint8

// Of several columns of the role Text, the last that is not empty is the text: a normalized text follows the other.
const (
	Unused   Role = iota
	Clip          // an id or a path; the list shows which
	ID            // the clip's name: its recording is wavs/ID.wav
	Path          // the path of the recording
	Text          // the transcript
	Rest          // the text is this and all columns after it, with their separators
	Speaker       // who speaks
	Language      // the language of the text
)

// roleNames are those of a description of columns.
var roleNames = [...]string{
	Unused: "-", Clip: "clip", ID: "id", Path: "path", Text: "text", Rest: "text+", Speaker: "speaker",
	Language: "language",
}

func (r Role) String() string { return roleNames[r] }

// parseRoles reads "id,text,speaker".
func parseRoles(list string) (roles []Role, err error) {
	keys, texts := 0, 0
	for i, name := range strings.Split(list, ",") {
		at := slices.Index(roleNames[:], strings.TrimSpace(name))
		if at < 0 {
			return nil, hint.Errorf("a column is "+strings.Join(roleNames[1:], ", ")+", or - for one that is not used",
				"column %d is %q", i+1, name)
		}
		role := Role(at)
		switch role {
		case Clip, ID, Path:
			keys++
		case Text, Rest:
			texts++
		case Speaker, Language:
			if slices.Contains(roles, role) {
				return nil, hint.Errorf("write - for the other", "two columns are the %s", role)
			}
		}
		roles = append(roles, role)
	}
	switch {
	case keys != 1:
		return nil, hint.Errorf("for example columns=id,text,speaker", "one column must be id or path, not %d", keys)
	case texts == 0:
		return nil, hint.Errorf("for example columns=id,text,speaker", "no column is the text")
	case slices.Contains(roles[:len(roles)-1], Rest):
		return nil, hint.Errorf("for example columns=id,text+",
			"text+ has all columns to the end of the line, so it is the last one")
	}
	return roles, nil
}

func rolesText(roles []Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, r.String())
	}
	return strings.Join(names, ",")
}
