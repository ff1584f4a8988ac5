package report

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// List says how a list is read: its layout, what is unusual about it, and some of its clips.
type List struct {
	Path     string    `json:"path"`
	Layout   string    `json:"layout"`  // as --list-layout takes it
	Columns  string    `json:"columns"` // the same in words
	Remarks  []string  `json:"remarks"`
	Examples []Example `json:"examples"`
}

// Example is a clip of a list.
type Example struct {
	Place    string `json:"place"`
	ID       string `json:"id"`
	Text     string `json:"text"`
	Speaker  string `json:"speaker"`
	Language string `json:"language"`
}

// shownText is how many characters of a text a line of an example has.
const shownText = 60

// Lines says how the list is read, for a person.
func (l *List) Lines() []string {
	if l.Layout == "" {
		return nil
	}
	lines := []string{"layout " + visible.Text(l.Columns)}
	for _, r := range l.Remarks {
		lines = append(lines, visible.Text(r))
	}
	for _, e := range l.Examples {
		text := []rune(e.Text)
		if len(text) > shownText {
			text = append(text[:shownText], '…')
		}
		who := []string{e.Language}
		if e.Speaker != "" {
			who = []string{"speaker " + e.Speaker, e.Language}
		}
		lines = append(lines, visible.Text(fmt.Sprintf("%s: %s (%s)", e.ID, string(text), strings.Join(who, ", "))))
	}
	return lines
}
