package pluginstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// InstallOptions are the arguments of `xtts-host plugins install`.
type InstallOptions struct {
	What              string // an archive, its https address, or NAME or NAME@VERSION of the index
	Plugins           string // the folder of plugins
	Index             string // file or https address; empty for none
	Key               string // the author's public key, or the file of it
	Replace           bool   // an installed version may be replaced
	Yes               bool   // do not ask
	RequireSignatures bool
	Ask               func(question string) (bool, error) // nil if there is nobody to ask

	download *downloader // of tests
}

// Install installs a plugin into the folder of plugins.
func Install(ctx context.Context, out io.Writer, o InstallOptions) error {
	if o.download == nil {
		o.download = newDownloader()
	}
	keys, err := signature.LoadKeys()
	if err != nil {
		return exit.Refused(err)
	}
	s, err := o.find(ctx)
	if err != nil {
		return exit.Refused(err)
	}
	return o.installFrom(ctx, out, s, keys)
}

// installFrom installs the archive at a place.
func (o *InstallOptions) installFrom(ctx context.Context, out io.Writer, s source, keys *signature.Keys) error {
	a, err := o.download.get(ctx, s)
	if err != nil {
		return exit.Refused(err)
	}
	err = o.install(ctx, out, a, keys)
	return errors.Join(err, a.done())
}

// find says where the archive is.
func (o *InstallOptions) find(ctx context.Context) (source, error) {
	if o.Index == "" || isAddress(o.What) {
		return source{place: o.What}, nil
	}
	return o.download.inIndex(ctx, o.Index, o.What)
}

// install shows an archive, asks, and installs it.
func (o *InstallOptions) install(ctx context.Context, out io.Writer, a *arrived, keys *signature.Keys) error {
	name := a.content.Index.Name
	signed, err := o.signer(a, keys)
	if err != nil {
		return exit.Refused(fmt.Errorf("%s: %w", a.place, err))
	}
	if err := a.content.CanRun(); err != nil {
		return exit.Refused(fmt.Errorf("%s: plugin %s: %w", a.place, name, err))
	}
	lost, err := o.checkPlace(name)
	if err != nil {
		return exit.Refused(err)
	}
	show(out, a, signed, keys.File(), lost)
	if err := o.confirm(name); err != nil {
		return exit.Refused(err)
	}
	if err := o.unpack(ctx, a, func(put func() error) error {
		if !signed.is {
			return put()
		}
		return exit.Advise(keys.Pin(name, signed.key, put), "make the folder of "+hint.Path(keys.File())+" writable")
	}); err != nil {
		return exit.Refused(exit.Advise(err, "name a folder on a disk with room that you may write to, with --plugins"))
	}
	return o.next(out, a)
}

// confirm asks whether to install what was shown.
func (o *InstallOptions) confirm(name string) error {
	if o.Yes {
		return nil
	}
	if o.Ask == nil {
		return hint.Errorf("read what it asks for above, and give --yes to install it", "plugin %s is not installed: "+
			"there is no terminal to ask on", name)
	}
	yes, err := o.Ask("install " + name + " into " + o.Plugins + "?")
	if err == nil && !yes {
		err = hint.Errorf("answer y to install it", "plugin %s is not installed", name)
	}
	return err
}

// work begins the names of folders that are being installed.
const work = ".xtts-install-"

// unpack writes the plugin into a folder beside its place. pin keeps its key and calls put, which renames the folder.
func (o *InstallOptions) unpack(ctx context.Context, a *arrived, pin func(put func() error) error) (err error) {
	plugins := files.In(o.Plugins)
	if err := plugins.MkdirAll(); err != nil {
		return err
	}
	plugins.Sweep(func(name string) bool { return strings.HasPrefix(name, work) })
	beside, lock, err := plugins.Temp(work, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, beside.RemoveAll(), closeLock(lock)) }()
	name := a.content.Index.Name
	fresh := beside.Join(name)
	if err := fresh.Mkdir(); err != nil {
		return err
	}
	if _, err := a.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := &interruptible{ctx, a.file}
	if err := archive.Unpack(in, a.content.Size, a.content.Sum, a.origin, fresh); err != nil {
		return err
	}
	e, err := catalog.Open(fresh.String())
	if err != nil {
		return err
	}
	if e.State != catalog.Verified {
		return hint.Errorf(e.Hint, "%s: plugin %s is %s: %s", a.place, name, e.State, e.Reason)
	}
	return pin(func() error { return o.put(fresh, plugins.Join(name)) })
}

// put gives an unpacked plugin its place.
func (o *InstallOptions) put(fresh, place files.Path) error {
	name := place.Base()
	if !o.Replace || !isInstalled(place) {
		err := fresh.Rename(place)
		if errors.Is(err, fs.ErrExist) { // since checkPlace
			err = hint.Errorf("compare it: "+hint.Command("plugins verify "+name+" --plugins "+hint.Path(o.Plugins)),
				"%s has come from another installation meanwhile: %w", place, err)
		}
		return err
	}
	if err := fresh.Exchange(place); err != nil { // what was there is removed with the folder beside it
		return hint.Errorf("remove it first: "+hint.Command("plugins remove "+name+" --plugins "+hint.Path(o.Plugins)),
			"the version that is there could not be replaced: %w", err)
	}
	return nil
}

// interruptible is a reader that ends with a context.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, exit.ErrInterrupted
	}
	return i.from.Read(p)
}

// next says what was installed and how to go on.
func (o *InstallOptions) next(out io.Writer, a *arrived) error {
	ix := a.content.Index
	folder := hint.Path(filepath.Join(o.Plugins, ix.Name))
	visible.Fprintf(out, "installed  %s %s in %s\n", ix.Name, ix.Version, folder)
	next := "next      "
	if ix.Environment != "" {
		if _, ok := ix.File("Makefile"); ok {
			visible.Fprintf(out, "%s make -C %s environment\n", next, folder)
			next = "          "
		}
	}
	_, err := visible.Fprintf(out, "%s %s\n", next, hint.Command("plugins test "+folder))
	return err
}
