package signature

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Pin adds the key of a plugin to the file, keeps what a person has written there, and then calls install. If that
// fails, it takes the line back. A plugin that has this key already changes nothing; one that has another is an
// OtherKey, and install is not called. The file is read again first: another process may have changed it since
// LoadKeys.
func (k *Keys) Pin(name string, key Key, install func() error) error {
	if k.file == "" {
		return hint.Errorf(noFolder, "there is no folder for the keys of plugins")
	}
	if is, err := k.has(name, key); err != nil {
		return err
	} else if is {
		return install()
	}
	at := files.At(k.file)
	if err := at.Parent().MkdirAll(); err != nil {
		return err
	}
	lock, err := hold(files.At(k.file + ".lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if is, err := k.has(name, key); err != nil {
		return err
	} else if is { // meanwhile
		return install()
	}
	before, err := at.Read(maxKeys)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return err
	}
	if err := at.Replace(withLine(before, name, key)); err != nil {
		return err
	}
	if err := install(); err != nil {
		delete(k.of, name)
		if isNew {
			return errors.Join(err, at.Remove())
		}
		return errors.Join(err, at.Replace(before))
	}
	k.of[name] = key
	return nil
}

// has reports whether the file has the key of a plugin now. Another key is an OtherKey.
func (k *Keys) has(name string, key Key) (bool, error) {
	now, err := loadKeys(k.file)
	if err != nil {
		return false, err
	}
	k.of = now.of
	known, ok := k.of[name]
	if ok && !known.Equal(key) {
		return false, k.OtherKey(name)
	}
	return ok, nil
}

// withLine adds the line of a plugin to the text of the file.
func withLine(text []byte, name string, key Key) []byte {
	if len(text) == 0 {
		text = []byte(keysHead)
	}
	line := fmt.Appendf(nil, "%s %s\n", name, key)
	if text[len(text)-1] != '\n' {
		line = append([]byte("\n"), line...)
	}
	return append(text[:len(text):len(text)], line...)
}

// hold locks a file, and waits for another process: it holds the lock for as long as a rename takes.
func hold(at files.Path) (lock *files.Held, err error) {
	const tries, pause = 100, 100 * time.Millisecond
	for range tries {
		lock, err = at.Hold()
		if !errors.Is(err, files.ErrLocked) && !errors.Is(err, fs.ErrNotExist) {
			return lock, err
		}
		time.Sleep(pause)
	}
	return nil, hint.Errorf("wait for the other installation, and try it again", "%w", err)
}
