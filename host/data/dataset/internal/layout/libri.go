package layout

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// LibriTTS (https://www.openslr.org/60/): SUBSET/SPEAKER/CHAPTER has, for each clip, X.wav, X.normalized.txt and
// X.original.txt, and SPEAKER_CHAPTER.trans.tsv with lines of id, original and normalized text. LibriSpeech
// (https://www.openslr.org/12/) has SPEAKER-CHAPTER.trans.txt with lines of id and text. A folder is all subsets or
// one.

// chapters returns the folders SPEAKER/CHAPTER or SUBSET/SPEAKER/CHAPTER with a file that ends in one of endings. With
// most, it looks for so many, and not at all of a large folder.
func chapters(dir string, most int, walk Walk, endings ...string) (list []string, err error) {
	speakers, err := below(dir, ".")
	if err != nil {
		return nil, err
	}
	looked := 0
	for _, a := range speakers {
		second, err := below(dir, a)
		if err != nil {
			return nil, err
		}
		for _, b := range second {
			third, err := below(dir, b)
			if err != nil {
				return nil, err
			}
			for _, chapter := range append([]string{b}, third...) {
				names, err := namesIn(filepath.Join(dir, chapter))
				if err != nil {
					return nil, err
				}
				looked++
				if err := walk.at(walkedFolders, looked); err != nil {
					return nil, err
				}
				if slices.ContainsFunc(names, endsIn(endings)) {
					list = append(list, chapter)
				}
				if most > 0 && (len(list) == most || looked == 1000) {
					return list, nil
				}
			}
		}
	}
	return list, nil
}

func endsIn(endings []string) func(string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) })
	}
}

// below returns the folders in a folder, from dir.
func below(dir, folder string) (list []string, err error) {
	names, err := folders(filepath.Join(dir, folder))
	for _, name := range names {
		list = append(list, path.Join(folder, name))
	}
	return list, err
}

var ttsEndings, speechEndings = []string{".trans.tsv", ".normalized.txt", ".original.txt"}, []string{".trans.txt"}

func isLibriTTS(dir string) (bool, error)    { return hasChapter(dir, ttsEndings) }
func isLibriSpeech(dir string) (bool, error) { return hasChapter(dir, speechEndings) }

func hasChapter(dir string, endings []string) (bool, error) {
	list, err := chapters(dir, 1, nil, endings...)
	return len(list) > 0, err
}

// hasDev reports whether the folder has subsets for training and for development.
func hasDev(dir string) (bool, error) {
	names, err := folders(dir)
	train, dev := false, false
	for _, name := range names {
		train, dev = train || strings.HasPrefix(name, "train"), dev || strings.HasPrefix(name, "dev")
	}
	return train && dev, err
}

// ofSplit returns the chapters of a split: of the subsets train-* those for training, of dev-* those for evaluation. A
// folder without train-* is one subset.
func ofSplit(dir string, eval bool, walk Walk, endings []string) ([]string, error) {
	list, err := chapters(dir, 0, walk, endings...)
	if err != nil || !slices.ContainsFunc(list, func(c string) bool { return strings.HasPrefix(c, "train") }) {
		return list, err
	}
	prefix := "train"
	if eval {
		prefix = "dev"
	}
	return slices.DeleteFunc(list, func(c string) bool { return !strings.HasPrefix(c, prefix) }), nil
}

func itemsOfLibriTTS(dir string, eval bool, walk Walk) (items []Item, err error) {
	list, err := ofSplit(dir, eval, walk, ttsEndings)
	if err != nil {
		return nil, err
	}
	for _, chapter := range list {
		found := map[string]*Item{}
		at := func(stem, place string) *Item {
			if found[stem] == nil {
				found[stem] = newChapterItem(chapter, stem, place)
			}
			return found[stem]
		}
		names, err := namesIn(filepath.Join(dir, chapter))
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
		if items, err = appendSorted(items, dir, chapter, found); err != nil {
			return nil, err
		}
		if err := walk.at(walkedTexts, len(items)); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func newChapterItem(chapter, stem, place string) *Item {
	parts := strings.Split(chapter, "/")
	return &Item{
		Place: place, ID: chapter + "/" + stem, Audio: chapter + "/" + stem + ".wav", Speaker: parts[len(parts)-2],
	}
}

// appendSorted appends the items of a chapter by their ids, with the names of their recordings.
func appendSorted(before []Item, dir, chapter string, found map[string]*Item) ([]Item, error) {
	recordings, err := stems(filepath.Join(dir, chapter))
	var items []Item
	for stem, item := range found {
		if name, ok := recordings[stem]; ok {
			item.Audio = chapter + "/" + name
		}
		items = append(items, *item)
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.ID, b.ID) })
	return append(before, items...), err
}

func itemsOfLibriSpeech(dir string, eval bool, walk Walk) (items []Item, err error) {
	list, err := ofSplit(dir, eval, walk, speechEndings)
	if err != nil {
		return nil, err
	}
	for _, chapter := range list {
		found := map[string]*Item{}
		names, err := namesIn(filepath.Join(dir, chapter))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
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
		if items, err = appendSorted(items, dir, chapter, found); err != nil {
			return nil, err
		}
		if err := walk.at(walkedTexts, len(items)); err != nil {
			return nil, err
		}
	}
	return items, nil
}
