package pluginstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// source is where an archive is, and what somebody has said of it.
type source struct {
	place   string         // file or https address
	name    string         // of the plugin that it must have; empty if nobody says
	version string         // of the plugin, if name is not empty
	sum     string         // hex SHA-256 that it must have; empty if nobody says
	signer  *signature.Key // of an index
}

// arrived is an archive on this machine.
type arrived struct {
	source
	file    *files.File
	origin  archive.Origin
	content *archive.Content
	done    func() error // closes the file, and removes it if it was downloaded
}

// isAddress reports whether a place is on another machine.
func isAddress(place string) bool { return strings.Contains(place, "://") }

// get opens an archive, after a download if need be, and checks all of it.
func (d *downloader) get(ctx context.Context, s source) (a *arrived, err error) {
	if isAddress(s.place) {
		a, err = d.archive(ctx, s)
	} else {
		a, err = openSource(s)
	}
	if err != nil && ctx.Err() != nil {
		err = exit.ErrInterrupted
	}
	if err != nil {
		return nil, err
	}
	a.content, err = archive.Read(&interruptible{ctx, a.file}, a.file.Size(), nil)
	switch {
	case ctx.Err() != nil:
		err = exit.ErrInterrupted
	case err != nil:
		err = fmt.Errorf("%s: %w", s.place, err)
	case s.sum != "" && a.content.Sum != s.sum:
		err = hint.Errorf("ask whoever keeps the index or the lock which of the two is right",
			"%s has the SHA-256 %s, and should have %s", s.place, a.content.Sum, s.sum)
	default:
		err = a.asked()
	}
	if err != nil {
		return nil, errors.Join(err, a.done())
	}
	return a, nil
}

// asked refuses an archive of another plugin than the one that was asked for: the key that is known for that one would
// not be looked at.
func (a *arrived) asked() error {
	if ix := a.content.Index; a.name != "" && (ix.Name != a.name || ix.Version != a.version) {
		return hint.Errorf("ask whoever keeps the index or the lock which of the two is right",
			"%s is the archive of %s %s, and should be that of %s %s", a.place, ix.Name, ix.Version, a.name, a.version)
	}
	return nil
}

// verify checks the signature over the bytes that the content was read from.
func (a *arrived) verify(key signature.Key) error {
	if _, err := a.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return signature.Verify(a.file, a.origin.Signature, key, a.content.Sum)
}

// openSource opens an archive on this machine, with the signature beside it.
func openSource(s source) (*arrived, error) {
	f, err := files.Open(s.place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Advise(err, "name an archive, an https address, or a plugin of an index with --index")
	}
	if err != nil {
		return nil, exit.Advise(err, "name an archive that "+hint.Command("plugins pack")+" has made")
	}
	a := &arrived{source: s, file: f, done: f.Close}
	a.origin.Signature, err = files.Read(s.place+signature.Suffix, signature.MaxText)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

// downloads begins the names of folders with downloads.
const downloads = "xtts-host-plugin-"

// archive downloads an archive and its signature.
func (d *downloader) archive(ctx context.Context, s source) (*arrived, error) {
	temporary := files.In(os.TempDir())
	temporary.Sweep(func(name string) bool { return strings.HasPrefix(name, downloads) })
	work, lock, err := temporary.Temp(downloads, "")
	if err != nil {
		return nil, exit.Advise(err, "set TMPDIR to a folder that you may write to")
	}
	done := func() error { return errors.Join(work.RemoveAll(), closeLock(lock)) }
	a := &arrived{source: s, origin: archive.Origin{Address: s.place}}
	if err = d.toFile(ctx, s.place, work.Join("archive")); err == nil {
		a.origin.Signature, err = d.small(ctx, s.place+signature.Suffix, signature.MaxText)
		if errors.Is(err, errNotThere) {
			err = nil
		}
	}
	if err == nil {
		a.file, err = work.Join("archive").Open()
	}
	if err != nil {
		return nil, errors.Join(err, done())
	}
	a.done = func() error { return errors.Join(a.file.Close(), done()) }
	return a, nil
}

// toFile downloads an archive into a new file.
func (d *downloader) toFile(ctx context.Context, address string, to files.Path) error {
	f, err := to.New()
	if err != nil {
		return err
	}
	return errors.Join(d.fetch(ctx, address, archive.MaxBytes, f), f.Close())
}

// closeLock closes the lock of a folder; a file system may have none.
func closeLock(lock io.Closer) error {
	if lock == nil {
		return nil
	}
	return lock.Close()
}
