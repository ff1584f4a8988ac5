package layout

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// spaces are what may stand before a value of JSON.
const spaces = "\ufeff \t\r\n"

// IsArray reports whether a list with these first bytes is one array of objects, as json.dump writes it.
func IsArray(head []byte) bool {
	rest, is := bytes.CutPrefix(bytes.TrimLeft(head, spaces), []byte("["))
	return is && bytes.HasPrefix(bytes.TrimLeft(rest, spaces), []byte("{"))
}

// ErrArray is the error about a list at a path that is one array of objects. Its hint is the command that writes a list
// of lines next to it, under a name that is not taken. A pass over an array could not tell the line of a fault, and
// would need the whole file in memory.
func ErrArray(path string) error {
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	to := stem + ".jsonl"
	for {
		if _, err := os.Lstat(to); err != nil {
			break
		}
		stem += ".lines"
		to = stem + ".jsonl"
	}
	const program = `import json, sys; a = json.load(open(sys.argv[1], "rb")); open(sys.argv[2], "w").writelines(json.dumps(o) + "\n" for o in a)`
	return hint.Errorf("write one object on each line, and name that list: python3 -c '"+program+"' "+hint.Path(path)+
		" "+hint.Path(to),
		"%s is one JSON array of objects, and a list has one object on each line", filepath.Base(path))
}
