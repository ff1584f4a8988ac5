package dataset

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
)

// A layout without one list is read as a list that is made from it: a line for each clip, of fields between unit
// separators, which a text cannot have after normalization.
const unit = "\x1f"

// listOfTree returns the list that is made from a folder, and the place of each line's text. Its recordings are below
// the folder above.
func listOfTree(tree, dir string, split Split, walk layout.Walk) (list io.ReadSeeker, places []string, err error) {
	items, err := layout.Items(tree, dir, split == Eval, walk)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	for i := range items {
		item := &items[i]
		for _, field := range []string{
			item.ID, filepath.Base(dir) + "/" + item.Audio, item.Speaker, item.Language, item.Problem,
		} {
			b.WriteString(strings.NewReplacer(unit, " ", "\n", " ", "\r", " ").Replace(field) + unit)
		}
		b.WriteString(strings.ReplaceAll(item.Text, "\n", " ") + "\n")
		places = append(places, item.Place)
	}
	return bytes.NewReader(b.Bytes()), places, nil
}

// parseItem parses a line of such a list. It refuses ids that name a recording outside of its folder: files of texts
// have some of them.
func parseItem(line []byte) (entry, error) {
	f := strings.SplitN(string(line), unit, 6)
	if len(f) < 6 {
		return entry{}, fmt.Errorf("%d fields of a made list, not 6", len(f))
	}
	e := entry{id: f[0], audio: f[1], any: true, speaker: f[2], language: f[3], reason: f[4], text: normalize(f[5])}
	if len(e.id) > MaxID {
		return entry{reason: longID(e.id)}, nil
	}
	if reason := controls(&e); reason != "" {
		return entry{reason: reason}, nil
	}
	switch {
	case e.reason != "":
	case e.id == "":
		e.reason = "the id is empty"
	case e.text == "":
		e.reason = "the text is empty"
	default:
		return e, checkID("", e.id)
	}
	return e, nil
}
