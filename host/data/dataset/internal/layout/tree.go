package layout

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The names of the layouts without one list.
const (
	VCTK        = "vctk"
	LibriTTS    = "libritts"
	LibriSpeech = "librispeech"
	MAILABS     = "mailabs"
)

// Item is a clip of a tree.
type Item struct {
	Place    string // of its text: a file, or a file and a line, below the folder
	ID       string
	Audio    string // below the folder
	Text     string // as it is written
	Speaker  string
	Language string
	Problem  string // why it cannot be used
}

// Walk is called often while the folders of a data set are read: so many of its folders, or of its texts, have been.
// Its error ends the walk. It may be nil.
type Walk func(what string, done int) error

func (w Walk) at(what string, done int) error {
	if w == nil {
		return nil
	}
	return w(what, done)
}

// What is counted of a walk.
const (
	walkedFolders = "folders"
	walkedTexts   = "texts"
)

// family is a layout without one list.
type family struct {
	name string
	// is reports whether a folder has it.
	is func(dir string) (bool, error)
	// items returns the clips for training or evaluation.
	items func(dir string, eval bool, walk Walk) ([]Item, error)
	// eval reports whether the folder has clips for evaluation by convention.
	eval func(dir string) (bool, error)
}

var families = []family{
	{VCTK, isVCTK, itemsOfVCTK, never},
	{LibriTTS, isLibriTTS, itemsOfLibriTTS, hasDev},
	{LibriSpeech, isLibriSpeech, itemsOfLibriSpeech, hasDev},
	{MAILABS, isMAILABS, itemsOfMAILABS, never},
}

func never(string) (bool, error) { return false, nil }

func familyOf(name string) *family {
	i := slices.IndexFunc(families, func(f family) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &families[i]
}

// TreeOf returns the name of the layout without a list that a folder has, or "". Where it finds none, it may be for the
// error.
func TreeOf(dir string) (name string, err error) {
	for _, f := range families {
		is, failed := f.is(dir)
		if is {
			return f.name, nil
		}
		err = cmp.Or(err, failed)
	}
	return "", err
}

// TreeHasEval reports whether a folder of such a layout has clips for evaluation.
func TreeHasEval(name, dir string) (bool, error) { return familyOf(name).eval(dir) }

// Items returns the clips of a folder of such a layout, in the order of their places.
func Items(name, dir string, eval bool, walk Walk) ([]Item, error) {
	f := familyOf(name)
	if is, err := f.is(dir); err != nil {
		return nil, err
	} else if !is {
		return nil, fmt.Errorf("the folder is not laid out as %s", name)
	}
	return f.items(dir, eval, walk)
}

// folders returns the names of the folders in a folder, sorted.
func folders(dir string) (names []string, err error) {
	list, err := entries(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		is, err := isFolder(dir, e)
		if err != nil {
			return nil, err
		}
		if is && e.Name() != lostFound {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// isFolder reports whether what is in a folder is a folder, or a link to one. A link that leads nowhere may have led to
// clips.
func isFolder(dir string, e fs.DirEntry) (bool, error) {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir(), nil
	}
	name := filepath.Join(dir, e.Name())
	info, err := files.Stat(name)
	switch {
	case missing(err) && filepath.Ext(name) == "":
		advice := "make it lead to its folder, or remove it: rm " + hint.Word(name)
		return false, hint.Errorf(advice, "%s: a link that leads nowhere", name)
	case errors.Is(err, syscall.ELOOP): // back to itself
		return false, nil
	case err != nil && !errors.Is(err, files.ErrNotRegular) && !missing(err):
		return false, unreadable(err)
	}
	return info != nil && info.IsDir(), nil
}

// lostFound is a folder of each disk with a file system ext4, which only root can read.
const lostFound = "lost+found"

// namesIn returns the names in a folder, sorted.
func namesIn(dir string) (names []string, err error) {
	list, err := entries(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names, err
}

// entries returns what is in a folder, sorted. What is not there, or is no folder, has nothing in it.
func entries(dir string) ([]fs.DirEntry, error) {
	list, err := files.In(dir).ReadDir()
	if err == nil || missing(err) {
		return list, nil
	}
	return nil, unreadable(err)
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// unreadable adds what to do about a folder that may not be read: what is in it may be a part of the data set.
func unreadable(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrPermission) {
		return hint.Errorf("make it readable: chmod -R u+rX "+hint.Word(at.Path)+", or move it out of the data set",
			"%w", err)
	}
	return err
}

// maxText is the most bytes of a file with one text.
const maxText = 1 << 20

// oneText reads a file with one text.
func oneText(item *Item, file string) error {
	item.Problem = "" // of a line about the same clip, in place of which the file counts
	data, err := files.Read(file, maxText)
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, files.ErrNotRegular) || errors.Is(err, files.ErrTooLarge):
		item.Problem = err.Error()
		return nil
	case err != nil:
		return err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		item.Problem = "the text is not UTF-8"
		return nil
	}
	item.Text = strings.Join(strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	return nil
}

// eachLine calls do for the lines of a file of texts that are not empty.
func eachLine(file string, do func(number int, line string)) error {
	f, err := files.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxText)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimRight(strings.TrimPrefix(lines.Text(), "\ufeff"), "\r")
		if strings.TrimSpace(line) != "" {
			do(number, line)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return nil
}

// stems returns the recordings in a folder by their names without endings. The first ending in the order of names
// counts.
func stems(dir string) (map[string]string, error) {
	names, err := namesIn(dir)
	found := map[string]string{}
	for _, name := range names {
		if HasEnding(name) {
			stem := strings.TrimSuffix(name, path.Ext(name))
			if _, ok := found[stem]; !ok || strings.EqualFold(path.Ext(name), ".wav") {
				found[stem] = name
			}
		}
	}
	return found, err
}
