package featurecache

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/files"
)

// Recognise reports whether a folder is the cache of a version that did not mark it: nothing else is in it, and it has
// an entry, or no file at all. Other programs have folders of the same names: git has its objects there.
var Recognise = cachedir.Named(ofCache.MatchString, hasEntry)

// ofCache are the names in the folder, also in one that is the folder of --cache-dir, too.
var ofCache = regexp.MustCompile(
	`^([0-9a-f]{2}|incoming|prepared|lock|index|bundles|kernels|confirmed|sample-[0-9a-f]{16})$`,
)

// tried is how many files are looked at for an entry: some may be damaged.
const tried = 64

func hasEntry(dir string) bool {
	if info, err := files.In(dir, incoming).Lstat(); err != nil || !info.IsDir() {
		return false
	}
	folders, err := files.In(dir).ReadDir()
	if err != nil {
		return false
	}
	seen := 0
	for _, folder := range folders {
		if len(folder.Name()) != 2 || !folder.IsDir() {
			continue
		}
		found, _ := files.In(dir, folder.Name()).ReadDir()
		for _, f := range found {
			key, ok := keyOfName(folder.Name(), f.Name())
			if ok && isEntry(files.In(dir, folder.Name(), f.Name()), key) {
				return true
			}
			if seen++; seen == tried {
				return false
			}
		}
	}
	return seen == 0
}

// keyOfName returns the key of a file in a folder.
func keyOfName(folder, name string) (Key, bool) {
	key, err := hex.DecodeString(folder + name)
	if err != nil || len(key) != len(Key{}) || strings.ToLower(name) != name {
		return Key{}, false
	}
	return Key(key), true
}

// isEntry reports whether this program has written a file: it ends with the checksum of its key and content.
func isEntry(at files.Path, key Key) bool {
	data, err := at.Read(maxEntry)
	if err != nil || len(data) < sha256.Size {
		return false
	}
	end := len(data) - sha256.Size
	return checksum(key, data[:end]) == [sha256.Size]byte(data[end:])
}
