package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// CacheFolder returns the folder of --cache-dir, or the user's cache folder. It refuses a folder that has files of
// others: the program replaces and removes what it finds in its cache. It makes nothing.
func CacheFolder(given string) (string, error) {
	dir, err := cachePath(given)
	if err != nil {
		return "", err
	}
	// Where the folder cannot be read, whoever uses it gets the error.
	if state, err := cachedir.Look(dir, recognise(given)); err == nil && state == cachedir.Foreign {
		return "", hint.Errorf("name a folder of its own: --cache-dir "+hint.Path(cachedir.Below(dir)),
			"--cache-dir %s: %w", given, cachedir.ErrForeign)
	}
	return dir, nil
}

// recognise returns what is taken for a cache folder without a marker. The user's own is one by its name.
func recognise(given string) cachedir.Recognise {
	if given == "" {
		return func(string) bool { return true }
	}
	return isCache
}

// cachePath is CacheFolder without a look at the folder.
func cachePath(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", hint.Errorf("name a folder with --cache-dir", "no cache folder: %w", err)
	}
	return filepath.Join(user, "xtts-host"), nil
}

// ofCache are the names that no other program gives, below a cache folder.
var ofCache = []struct {
	folder string
	name   *regexp.Regexp
}{
	{"index", regexp.MustCompile(`^recordings-[0-9a-f]{16}\.bin$`)},
	{"bundles", regexp.MustCompile(`^myxtts-[a-z]+-[0-9a-f]{16}$`)},
	{"kernels", regexp.MustCompile(`^[0-9a-f]{64}\.image$`)},
	{".", regexp.MustCompile(`^sample-[0-9a-f]{16}$`)},
}

// isCache recognises the cache folder of a version that did not mark it. Other files may be there: only what has these
// names, and kernels by their hashes, is replaced or removed.
func isCache(dir string) bool {
	for _, of := range ofCache {
		entries, _ := os.ReadDir(filepath.Join(dir, of.folder))
		for _, e := range entries {
			if of.name.MatchString(e.Name()) {
				return true
			}
		}
	}
	text, err := files.Read(filepath.Join(dir, confirmedFile), maxConfirmed)
	return err == nil && confirmedLine.Match(text) || unfinished(dir)
}

// unfinished reports whether a first start that failed or was killed has left the folder: it has nothing but our
// folders, and they have nothing but what that start was writing.
func unfinished(dir string) bool {
	folders, err := os.ReadDir(dir)
	if err != nil || len(folders) == 0 {
		return false
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(dir, folder.Name()))
		if !slices.Contains([]string{"bundles", "index", "kernels"}, folder.Name()) || err != nil {
			return false
		}
		for _, e := range entries {
			if !partial.MatchString(e.Name()) {
				return false
			}
		}
	}
	return true
}

// partial are the names of what is being written.
var partial = regexp.MustCompile(`^\.(myxtts-[a-z]+-[0-9a-f]{16}\..*\.tmp|.*\.xtts-partial)$`)

// confirmedLine is the beginning of the file with confirmations.
var confirmedLine = regexp.MustCompile(`^(plugins|ort-lib) "/`)
