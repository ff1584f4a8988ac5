package layout

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// M-AILABS (https://github.com/i-celeste-aurora/m-ailabs-dataset): LANGUAGE/by_book/GENDER/SPEAKER/BOOK has
// metadata.csv, with lines id|text|normalized text, and wavs/. LANGUAGE is one such as de_DE. Books of several readers
// are in by_book/mix/BOOK; their speaker is mix.

const mailabsDepth = 7

// books returns the folders with a metadata.csv below by_book, from the folder of the data set: at most so many, or all
// for 0. It follows links, but not back to a folder that it is in.
func books(dir string, most int, walk Walk) (list []string, err error) {
	w := bookWalk{dir: dir, walk: walk, found: func(book string) bool {
		list = append(list, book)
		return len(list) != most
	}}
	if err = w.in("", nil); errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return list, err
}

type bookWalk struct {
	dir     string
	walk    Walk
	folders int
	found   func(book string) bool // false ends the walk
}

// in walks a folder below that of the data set. above are the folders that this one is in.
func (w *bookWalk) in(rel string, above []fs.FileInfo) error {
	here := filepath.Join(w.dir, rel)
	info, err := files.Stat(here)
	if info == nil {
		return unreadable(err)
	}
	if slices.ContainsFunc(above, func(up fs.FileInfo) bool { return os.SameFile(up, info) }) {
		return nil
	}
	list, err := entries(here)
	w.folders++
	if err = cmp.Or(err, w.walk.at(walkedFolders, w.folders)); err != nil {
		return err
	}
	for _, e := range list {
		below := filepath.Join(rel, e.Name())
		switch {
		case e.Name() == "metadata.csv":
			if rel != "" && byBook.MatchString(filepath.ToSlash(filepath.Join(w.dir, below))) &&
				!w.found(filepath.ToSlash(rel)) {
				return fs.SkipAll
			}
			continue
		case e.Name() == "wavs" || e.Name() == lostFound || len(above) >= mailabsDepth:
			continue
		}
		is, err := isFolder(here, e)
		if err == nil && is {
			err = w.in(below, append(slices.Clip(above), info))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var (
	byBook   = regexp.MustCompile(`(?:^|/)by_book/(?:(male|female)/([^/]+)|(mix))/`)
	ofLocale = regexp.MustCompile(`(?:^|/)([a-z]{2})_[A-Z]{2}/(?:.*/)?by_book/`)
)

func isMAILABS(dir string) (bool, error) {
	have, err := folders(dir)
	if err != nil || len(have) == 0 {
		return false, err
	}
	if !strings.Contains(filepath.ToSlash(dir)+"/", "/by_book/") {
		if has, err := hasByBook(dir, have, 2); !has || err != nil {
			return false, err
		}
	}
	list, err := books(dir, 1, nil)
	return len(list) > 0, err
}

// hasByBook looks for by_book in a few levels, so that a large folder of another kind is not walked.
func hasByBook(dir string, have []string, levels int) (bool, error) {
	for _, name := range have {
		if name == "by_book" {
			return true, nil
		}
	}
	if levels == 0 {
		return false, nil
	}
	for _, name := range have[:min(len(have), 20)] {
		in := filepath.Join(dir, name)
		names, err := folders(in)
		if err != nil {
			return false, err
		}
		if has, err := hasByBook(in, names, levels-1); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

func itemsOfMAILABS(dir string, _ bool, walk Walk) (items []Item, err error) {
	list, err := books(dir, 0, walk)
	if err != nil {
		return nil, err
	}
	l := Layout{Columns: []Role{ID, Text, Text}, Separator: '|', Quotes: No}
	for _, book := range list {
		whole := filepath.ToSlash(filepath.Join(dir, book)) + "/"
		item := Item{}
		if m := byBook.FindStringSubmatch(whole); m != nil {
			item.Speaker = m[2] + m[3]
		}
		if m := ofLocale.FindStringSubmatch(whole); m != nil {
			item.Language = m[1]
		}
		err := eachLine(filepath.Join(dir, book, "metadata.csv"), func(number int, line string) {
			c := l.Cut(line, strings.TrimSpace)
			item := item
			item.Place = fmt.Sprintf("%s/metadata.csv:%d", book, number)
			item.Text, item.Problem = c.Text, c.Reason
			if c.Key != "" {
				item.ID, item.Audio = book+"/"+c.Key, book+"/wavs/"+strings.TrimSuffix(c.Key, ".wav")+".wav"
			}
			items = append(items, item)
		})
		if err = cmp.Or(err, walk.at(walkedTexts, len(items))); err != nil {
			return nil, err
		}
	}
	if len(items) == 0 {
		return nil, errors.New("no metadata.csv below by_book has a line")
	}
	return items, nil
}
