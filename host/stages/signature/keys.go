package signature

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// keysHead is the beginning of the file of keys.
const keysHead = `# The key of each plugin that was installed with a signature: NAME KEY, one a line.
# xtts-host adds a line when it installs a plugin for the first time, and refuses the plugin with another key.
`

// maxKeys bounds the size of the file of keys in bytes.
const maxKeys = 1 << 20

// Keys are the keys that a user has accepted, by the name of the plugin. A nil one has no key and no file.
type Keys struct {
	file string
	of   map[string]Key
}

// LoadKeys reads the user's keys, from plugin-keys in the folder xtts-host of the user's configuration
// ($XDG_CONFIG_HOME or ~/.config). A file that is not there has none, and so has a user without such a folder.
func LoadKeys() (*Keys, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return &Keys{of: map[string]Key{}}, nil
	}
	return loadKeys(filepath.Join(dir, "xtts-host", "plugin-keys"))
}

func loadKeys(file string) (*Keys, error) {
	k := &Keys{file: file, of: map[string]Key{}}
	text, err := files.Read(file, maxKeys)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		bad := func(format string, args ...any) error {
			return hint.Errorf("correct the line: the name of a plugin, a space and its public key", "%s:%d: %w",
				file, i+1, fmt.Errorf(format, args...))
		}
		if len(fields) != 2 {
			return nil, bad("%q is not a name and a key", line)
		}
		if _, twice := k.of[fields[0]]; twice {
			return nil, bad("plugin %s has a line already", fields[0])
		}
		if k.of[fields[0]], err = ParseKey(fields[1]); err != nil {
			return nil, bad("%w", err)
		}
	}
	return k, nil
}

// noFolder is the hint for a user without a folder for configuration.
const noFolder = "set HOME or XDG_CONFIG_HOME"

// File is the path of the file; empty if there is no folder for it.
func (k *Keys) File() string {
	if k == nil {
		return ""
	}
	return k.file
}

// Of returns the key of a plugin, if there is one.
func (k *Keys) Of(name string) (Key, bool) {
	if k == nil {
		return Key{}, false
	}
	key, ok := k.of[name]
	return key, ok
}

// OtherKey is the error for a plugin that is known with another key than the one that it is offered with.
func (k *Keys) OtherKey(name string) error {
	return hint.Errorf(fmt.Sprintf("if its author has told you of a new key, change the line of %s in %s", name,
		hint.Path(k.file)), "plugin %s is known with the key %s, and is signed by another one", name, k.of[name])
}
