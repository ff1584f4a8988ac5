package layout

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// LibriTTS (https://www.openslr.org/60/): SUBSET/SPEAKER/CHAPTER has, for each clip, X.wav, X.normalized.txt and
// X.original.txt, and SPEAKER_CHAPTER.trans.tsv with lines of id, original and normalized text. LibriSpeech
// (https://www.openslr.org/12/) has SPEAKER-CHAPTER.trans.txt with lines of id and text. A folder is all subsets or one.

// chapters returns the folders SPEAKER/CHAPTER or SUBSET/SPEAKER/CHAPTER with a file that ends in one of endings. With most, it
// looks for so many, and not at all of a large folder.
func chapters(dir string, most int, endings ...string) (list []string) {
	has := func(chapter string) bool {
		return slices.ContainsFunc(namesIn(filepath.Join(dir, chapter)), func(name string) bool {
			return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) })
		})
	}
	looked := 0
	for _, a := range folders(dir) {
		for _, b := range folders(filepath.Join(dir, a)) {
			for _, chapter := range append([]string{a + "/" + b}, below(dir, a+"/"+b)...) {
				if looked++; has(chapter) {
					list = append(list, chapter)
				}
				if most > 0 && (len(list) == most || looked == 1000) {
					return list
				}
			}
		}
	}
	return list
}

func below(dir, folder string) (list []string) {
	for _, c := range folders(filepath.Join(dir, folder)) {
		list = append(list, folder+"/"+c)
	}
	return list
}

var ttsEndings, speechEndings = []string{".trans.tsv", ".normalized.txt", ".original.txt"}, []string{".trans.txt"}

func isLibriTTS(dir string) bool    { return len(chapters(dir, 1, ttsEndings...)) > 0 }
func isLibriSpeech(dir string) bool { return len(chapters(dir, 1, speechEndings...)) > 0 }

// hasDev reports whether the folder has subsets for training and for development.
func hasDev(dir string) bool {
	train, dev := false, false
	for _, name := range folders(dir) {
		train, dev = train || strings.HasPrefix(name, "train"), dev || strings.HasPrefix(name, "dev")
	}
	return train && dev
}

// ofSplit leaves the chapters of a split: of the subsets train-* those for training, of dev-* those for evaluation. A folder
// without train-* is one subset.
func ofSplit(list []string, eval bool) []string {
	if !slices.ContainsFunc(list, func(c string) bool { return strings.HasPrefix(c, "train") }) {
		return list
	}
	prefix := "train"
	if eval {
		prefix = "dev"
	}
	return slices.DeleteFunc(list, func(c string) bool { return !strings.HasPrefix(c, prefix) })
}

func itemsOfLibriTTS(dir string, eval bool) (items []Item, err error) {
	for _, chapter := range ofSplit(chapters(dir, 0, ttsEndings...), eval) {
		found := map[string]*Item{}
		at := func(stem, place string) *Item {
			if found[stem] == nil {
				found[stem] = newChapterItem(chapter, stem, place)
			}
			return found[stem]
		}
		names := namesIn(filepath.Join(dir, chapter))
		for _, name := range names { // the least wanted first
			if strings.HasSuffix(name, ".trans.tsv") {
				err = cmp.Or(err, eachLine(filepath.Join(dir, chapter, name), func(number int, line string) {
					columns := strings.Split(line, "\t")
					item := at(columns[0], fmt.Sprintf("%s/%s:%d", chapter, name, number))
					item.Text = columns[len(columns)-1]
					if len(columns) < 2 {
						item.Problem = "no tab between id and text"
					}
				}))
			}
		}
		for _, ending := range []string{".original.txt", ".normalized.txt"} {
			for _, name := range names {
				stem, ok := strings.CutSuffix(name, ending)
				if !ok || ending == ".original.txt" && found[stem] != nil {
					continue
				}
				item := at(stem, chapter+"/"+name)
				item.Place = chapter + "/" + name
				err = cmp.Or(err, oneText(item, filepath.Join(dir, chapter, name)))
			}
		}
		if err != nil {
			return nil, err
		}
		items = append(items, sorted(dir, chapter, found)...)
	}
	return items, nil
}

func newChapterItem(chapter, stem, place string) *Item {
	parts := strings.Split(chapter, "/")
	return &Item{Place: place, ID: chapter + "/" + stem, Audio: chapter + "/" + stem + ".wav", Speaker: parts[len(parts)-2]}
}

// sorted returns the items of a chapter by their ids, with the names of their recordings.
func sorted(dir, chapter string, found map[string]*Item) (items []Item) {
	recordings := stems(filepath.Join(dir, chapter))
	for stem, item := range found {
		if name, ok := recordings[stem]; ok {
			item.Audio = chapter + "/" + name
		}
		items = append(items, *item)
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.ID, b.ID) })
	return items
}

func itemsOfLibriSpeech(dir string, eval bool) (items []Item, err error) {
	for _, chapter := range ofSplit(chapters(dir, 0, speechEndings...), eval) {
		found := map[string]*Item{}
		for _, name := range namesIn(filepath.Join(dir, chapter)) {
			if !strings.HasSuffix(name, ".trans.txt") {
				continue
			}
			err := eachLine(filepath.Join(dir, chapter, name), func(number int, line string) {
				stem, text, _ := strings.Cut(line, " ")
				item := newChapterItem(chapter, stem, fmt.Sprintf("%s/%s:%d", chapter, name, number))
				item.Text = text
				found[stem] = item
			})
			if err != nil {
				return nil, err
			}
		}
		items = append(items, sorted(dir, chapter, found)...)
	}
	return items, nil
}
