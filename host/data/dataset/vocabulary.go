package dataset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// vocabulary has the ids of symbols.
type vocabulary struct {
	file  string // for messages
	split string // manifest.SplitSpace, SplitCharacter or ""
	ids   map[string]int32
}

// maxVocabulary bounds the file, in bytes.
const maxVocabulary = 64 << 20

// loadVocabulary reads a JSON object of symbols and ids.
func loadVocabulary(path string, of manifest.TensorSpec) (*vocabulary, error) {
	v := &vocabulary{file: filepath.Base(path), split: of.Split}
	text, err := files.Read(path, maxVocabulary)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &v.ids); err != nil || len(v.ids) == 0 {
		return nil, fmt.Errorf("%s: not an object of symbols and their ids, such as {\"a\": 0}", v.file)
	}
	for symbol, id := range v.ids {
		if id < 0 || of.Below > 0 && int(id) >= of.Below {
			return nil, fmt.Errorf("%s: the id of %q is %d, but the input takes 0 to %d", v.file, symbol, id,
				cmp.Or(of.Below, 1<<31)-1)
		}
	}
	return v, nil
}

// symbols splits a string.
func (v *vocabulary) symbols(text string) iter.Seq[string] {
	if v.split == manifest.SplitCharacter {
		return strings.SplitSeq(text, "")
	}
	return strings.FieldsSeq(text)
}

func (v *vocabulary) id(symbol string) (int32, error) {
	id, ok := v.ids[symbol]
	if ok {
		return id, nil
	}
	if c := []rune(symbol); len(c) == 1 {
		return 0, fmt.Errorf(" is %q (U+%04X), which is not in %s", symbol, c[0], v.file)
	}
	return 0, fmt.Errorf(" is %q, which is not in %s", brief(symbol), v.file)
}
