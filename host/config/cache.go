package config

import (
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// CacheFolder is the folder that --cache-dir names, and without it the user's.
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
