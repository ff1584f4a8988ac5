package pluginstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// suffix ends the name of an archive.
const suffix = ".tar.gz"

// PackOptions are the arguments of `xtts-host plugins pack`.
type PackOptions struct {
	Folder   string
	Out      string // the archive; if empty, NAME-VERSION.tar.gz in the working directory
	Sign     string // file of a secret key; empty for no signature
	Password func(prompt string) (string, error)
}

// Pack writes the archive of a plugin's folder, and its signature beside it.
func Pack(out io.Writer, o PackOptions) error {
	e, err := packable(o.Folder)
	if err != nil {
		return exit.Refused(err)
	}
	var secret signature.Secret
	if o.Sign != "" {
		if secret, err = readSecret(o.Sign, o.Password); err != nil {
			return exit.Refused(err)
		}
	}
	if o.Out == "" {
		o.Out = e.Manifest.ID + "-" + e.Manifest.Version + suffix
	}
	content, signed, err := writeArchive(o.Out, e, o.Sign != "", secret)
	if err != nil {
		return exit.Refused(err)
	}
	index := &content.Index
	visible.Fprintf(out, "created  %s: %s %s, %s of %s, %s\nSHA-256  %s\n", o.Out, index.Name, index.Version,
		units.Count(len(index.Files), "file"), size(index.Bytes()), size(content.Size), content.Sum)
	beside := files.At(o.Out + signature.Suffix)
	if o.Sign == "" { // that of an archive that was there is not one of this archive
		if err := beside.Remove(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := beside.Replace(signed); err != nil {
		return err
	}
	visible.Fprintf(out, "signed   %s: by the key %s\n", beside, secret.Public())
	return nil
}

// packable returns a plugin that can be passed on: one whose plugin.sum lists its files.
func packable(folder string) (catalog.Entry, error) {
	const which = "name the folder of one plugin, in which plugin.json is"
	if info, err := os.Stat(folder); err != nil {
		return catalog.Entry{}, hint.Errorf(which, "the folder of the plugin: %w", err)
	} else if !info.IsDir() {
		return catalog.Entry{}, hint.Errorf(which, "%s is a file, not the folder of a plugin", folder)
	}
	e, err := catalog.Open(folder)
	if err != nil {
		return e, err
	}
	const sums = "write it: make release in a plugin of plugins new, or sha256sum FILES >" + manifest.SumFile
	switch {
	case e.State == catalog.Skipped:
		return e, hint.Errorf(which, "%s: %s", folder, e.Reason)
	case e.State == catalog.Unverified:
		return e, hint.Errorf(sums, "%s: it has no %s, which lists the files that belong to the plugin", folder,
			manifest.SumFile)
	case !e.Startable():
		return e, hint.Errorf(e.Hint, "%s: the plugin is %s: %s", folder, e.State, e.Reason)
	}
	return e, nil
}

// writeArchive writes the archive of a plugin, in one step, once it has been read as an installation reads it. It
// returns what the archive has and, if sign says so, its signature.
func writeArchive(to string, e catalog.Entry, sign bool, secret signature.Secret) (
	content *archive.Content, signed []byte, err error,
) {
	draft, err := files.At(to).Create()
	if err != nil {
		return nil, nil, exit.Advise(err, "name a file in a folder that you may write to, with --out")
	}
	defer func() { err = errors.Join(err, draft.Discard()) }()
	if _, err := archive.Write(draft, e.Dir, e.Listed()); err != nil {
		return nil, nil, exit.Advise(fmt.Errorf("%s: %w", e.Dir, err), "correct the plugin")
	}
	length, err := draft.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = draft.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, nil, err
	}
	if content, err = archive.Read(draft, length, nil); err != nil {
		return nil, nil, fmt.Errorf("%s: nobody could install it: %w", to, err)
	}
	if sign {
		if _, err = draft.Seek(0, io.SeekStart); err == nil {
			signed, err = signature.Sign(draft, secret, content.Index.Name+" "+content.Index.Version)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return content, signed, draft.Commit()
}

// readSecret reads the file of a secret key.
func readSecret(file string, password func(string) (string, error)) (signature.Secret, error) {
	text, err := files.Read(file, signature.MaxText)
	if err != nil {
		return signature.Secret{}, exit.Advise(err, "make a key: "+hint.Command("plugins key "+hint.Path(file)))
	}
	secret, err := signature.ParseSecret(text, func() (string, error) { return password("password of " + file) })
	if err != nil {
		return secret, fmt.Errorf("%s: %w", file, err)
	}
	return secret, nil
}

// KeyOptions are the arguments of `xtts-host plugins key`.
type KeyOptions struct {
	File       string // of the secret key; the public key is in File.pub
	NoPassword bool
	Password   func(prompt string) (string, error)
}

// Key makes a key that signs archives.
func Key(out io.Writer, o KeyOptions) error {
	public := o.File + ".pub"
	for _, file := range []string{o.File, public} {
		if _, err := files.At(file).Lstat(); err == nil {
			return exit.Usage(fmt.Errorf("%s is there already", file), "name a new file")
		}
	}
	word := ""
	if !o.NoPassword {
		var err error
		if word, err = newPassword(o.Password); err != nil {
			return exit.Refused(err)
		}
	}
	secret, text, err := signature.NewSecret(word)
	if err != nil {
		return err
	}
	f, err := files.At(o.File).Private()
	if err != nil {
		return exit.Refused(exit.Advise(err, "name a file in a folder that you may write to"))
	}
	_, err = f.Write(append(bytes.TrimSpace(text), '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = files.At(public).Replace(secret.PublicFile())
	}
	if err != nil {
		return err
	}
	_, err = visible.Fprintf(out, `created  %s: the secret key; keep it where nobody else can read it
public   %s: %s
next     publish the public key where users of your plugins find it, apart from the archives
         %s
`, o.File, public, secret.Public(), hint.Command("plugins pack FOLDER --sign "+hint.Path(filepath.Clean(o.File))))
	return err
}

// newPassword asks twice.
func newPassword(ask func(string) (string, error)) (string, error) {
	word, err := ask("new password of the key")
	if err != nil {
		return "", err
	}
	again, err := ask("the same password again")
	if err != nil {
		return "", err
	}
	if word != again || word == "" {
		return "", hint.Errorf("type one password twice, or give --no-password",
			"the two passwords are not the same, or empty")
	}
	return word, nil
}
