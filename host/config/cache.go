package config

import (
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// CacheFolder returns the folder of --cache-dir, or the user's cache folder.
func CacheFolder(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", hint.Errorf("name a folder with --cache-dir", "no cache folder: %w", err)
	}
	return filepath.Join(user, "xtts-host"), nil
}
