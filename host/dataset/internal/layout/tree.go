package layout

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/shared/files"
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

// family is a layout without one list.
type family struct {
	name string
	// is reports whether a folder has it.
	is func(dir string) bool
	// items returns the clips for training or evaluation.
	items func(dir string, eval bool) ([]Item, error)
	// eval reports whether the folder has clips for evaluation by convention.
	eval func(dir string) bool
}

var families = []family{
	{VCTK, isVCTK, itemsOfVCTK, never},
	{LibriTTS, isLibriTTS, itemsOfLibriTTS, hasDev},
	{LibriSpeech, isLibriSpeech, itemsOfLibriSpeech, hasDev},
	{MAILABS, isMAILABS, itemsOfMAILABS, never},
}

func never(string) bool { return false }

func familyOf(name string) *family {
	i := slices.IndexFunc(families, func(f family) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &families[i]
}

// TreeOf returns the name of the layout without a list that a folder has, or "".
func TreeOf(dir string) string {
	for _, f := range families {
		if f.is(dir) {
			return f.name
		}
	}
	return ""
}

// TreeHasEval reports whether a folder of such a layout has clips for evaluation.
func TreeHasEval(name, dir string) bool { return familyOf(name).eval(dir) }

// Items returns the clips of a folder of such a layout, in the order of their places.
func Items(name, dir string, eval bool) ([]Item, error) {
	f := familyOf(name)
	if !f.is(dir) {
		return nil, fmt.Errorf("the folder is not laid out as %s", name)
	}
	return f.items(dir, eval)
}

// folders returns the names of the folders in a folder, sorted.
func folders(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		is := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(dir, e.Name()))
			is = err == nil && info.IsDir()
		}
		if is {
			names = append(names, e.Name())
		}
	}
	return names
}

// namesIn returns the names in a folder, sorted; none if it cannot be read.
func namesIn(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// maxText is the most bytes of a file with one text.
const maxText = 1 << 20

// oneText reads a file with one text.
func oneText(item *Item, file string) error {
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

// stems returns the recordings in a folder by their names without endings. The first ending in the order of names counts.
func stems(dir string) map[string]string {
	found := map[string]string{}
	for _, name := range namesIn(dir) {
		if HasEnding(name) {
			stem := strings.TrimSuffix(name, path.Ext(name))
			if _, ok := found[stem]; !ok || strings.EqualFold(path.Ext(name), ".wav") {
				found[stem] = name
			}
		}
	}
	return found
}
