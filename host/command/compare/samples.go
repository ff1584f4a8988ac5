package compare

import (
	"github.com/xtts-host/xtts-host/host/observe/page"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

// mostTexts bounds the texts on the page.
const mostTexts = 40

// texts puts the samples of the last evaluations beside each other, by their texts, or by their numbers if these are
// not known.
func texts(r *Result, all []*record.Run, media *page.Media, link func(folder string) string) []page.Text {
	at := map[string]int{}
	var list []page.Text
	for i, run := range all {
		for _, u := range run.Spoken.End() {
			name := page.NameOf(&u)
			key := u.Text + "\x00" + u.Language
			if u.Text == "" {
				key = name
			}
			n, ok := at[key]
			if !ok {
				if len(list) == mostTexts {
					continue
				}
				n, at[key] = len(list), len(list)
				list = append(list, page.Text{Text: u.Text, Name: name, ID: u.ID, Language: u.Language})
			}
			t := &list[n]
			if t.Reference == nil {
				t.Reference = media.Take(run.Folder, u.Reference, link(run.Folder))
			}
			t.Takes = append(t.Takes, page.TakeOf(&u, r.Runs[i].Letter+", step "+page.Count(u.Step), run.Folder,
				link(run.Folder), media))
		}
	}
	return list
}
