package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// M-AILABS (https://github.com/i-celeste-aurora/m-ailabs-dataset): LANGUAGE/by_book/GENDER/SPEAKER/BOOK has metadata.csv,
// with lines id|text|normalized text, and wavs/. LANGUAGE is one such as de_DE. Books of several readers are in by_book/mix/BOOK; their
// speaker is mix.

const mailabsDepth = 7

// books returns the folders with a metadata.csv below by_book, from the folder of the data set.
func books(dir string, most int) (list []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(err)
		}
		rel, _ := filepath.Rel(dir, path)
		rel = filepath.ToSlash(rel)
		switch {
		case entry.IsDir() && (entry.Name() == "wavs" || entry.Name() == lostFound || strings.Count(rel, "/") >= mailabsDepth):
			return fs.SkipDir
		case entry.Name() == "metadata.csv" && rel != "metadata.csv" && byBook.MatchString(filepath.ToSlash(path)):
			if list = append(list, filepath.ToSlash(filepath.Dir(rel))); len(list) == most {
				return fs.SkipAll
			}
		}
		return nil
	})
	return list, err
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
	list, err := books(dir, 1)
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

func itemsOfMAILABS(dir string, _ bool) (items []Item, err error) {
	list, err := books(dir, 0)
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
		if err != nil {
			return nil, err
		}
	}
	if len(items) == 0 {
		return nil, errors.New("no metadata.csv below by_book has a line")
	}
	return items, nil
}
