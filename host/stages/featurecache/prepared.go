package featurecache

import (
	"errors"
	"math"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// Unlimited is the Limit of a cache that only the disk bounds.
const Unlimited = math.MaxInt64

// preparedFile marks a prepared folder. All have the same text, because folders of several machines are copied into
// one.
const (
	preparedFile = "prepared"
	preparedText = "Rows that were computed before training: xtts-host removes none. Delete this file to change that.\n"
)

// mark makes the folder a prepared one. Several processes may do this at the same time.
func (c *Cache) mark() error {
	if c.prepared() {
		return nil
	}
	f, temp, err := c.newFile()
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(preparedText))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = temp.Rename(files.In(c.Dir, preparedFile))
	}
	if err != nil {
		temp.Remove()
	}
	return err
}

// prepared reports whether the folder is a prepared one.
func (c *Cache) prepared() bool {
	info, err := files.In(c.Dir, preparedFile).Lstat()
	return err == nil && info.Mode().IsRegular()
}

// Room returns a Limit with which a folder of so many bytes has room for more.
func Room(bytes int64) int64 { return (bytes/(sweepShare-2) + 1) * sweepShare }
