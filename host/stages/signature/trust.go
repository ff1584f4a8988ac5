package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Trust is what is known about the folder of a plugin.
type Trust struct {
	// Installed is what it was installed from; nil if it was not installed from an archive, or if that cannot be read.
	Installed *archive.Installed
	// Signer is the known key that has signed the archive; nil without one.
	Signer *Key
	// Changed says what is not as in the archive; nil also for a plugin that was not installed from one.
	Changed error
	// Unsigned says why there is no signer.
	Unsigned error
}

// Words says what is known, for a line of a list.
func (t Trust) Words() string {
	switch {
	case t.Changed != nil:
		return "changed since it was installed"
	case t.Installed == nil:
		return "not installed from an archive"
	case t.Signer != nil:
		return "unchanged, signed by " + t.Signer.String()
	case t.Installed.Signature != nil:
		return "unchanged, its signature is not of a known key"
	}
	return "unchanged, not signed"
}

// installAgain is the hint for a folder that is not as it was installed.
func installAgain() string {
	return "install it again: " + hint.Command("plugins install ARCHIVE --replace")
}

// restore is the hint for a folder whose archive is still as it was.
func restore(dir string) string {
	return "install it again: " + hint.Command(fmt.Sprintf("plugins install %s --plugins %s --replace",
		hint.Path(archive.Kept(dir)), hint.Path(filepath.Dir(dir))))
}

// Examine compares the folder of a plugin with the archive that it was installed from, and the archive's signature with
// the key that is known for the plugin.
func (k *Keys) Examine(name, dir string) (t Trust) {
	installed, err := archive.Check(dir)
	if errors.Is(err, archive.ErrNotInstalled) {
		t.Unsigned = hint.Errorf("install it from a signed archive: "+hint.Command("plugins install ARCHIVE"),
			"plugin %s is not signed: %w", name, err)
		return t
	}
	if err == nil && installed.Index.Name != name {
		err = fmt.Errorf("it was installed as plugin %s", installed.Index.Name)
	}
	if err != nil {
		t.Changed = hint.Errorf(installAgain(), "plugin %s has changed since it was installed: %w", name, err)
		t.Unsigned = t.Changed
		return t
	}
	t.Installed = installed
	if len(installed.Changes) > 0 {
		advice := restore(dir)
		if archive.OnlyAdded(installed.Changes) {
			advice = "remove what was added from " + hint.Path(dir)
		}
		t.Changed = hint.Errorf(advice, "plugin %s has changed since it was installed: %s", name,
			short(installed.Changes))
	}
	if t.Unsigned = k.signed(name, dir, installed.Origin, installed.Sum); t.Unsigned == nil {
		key := k.of[name]
		t.Signer = &key
	}
	return t
}

// short lists the first of many.
func short(list []string) string {
	const most = 5
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), more)
	}
	return strings.Join(list, ", ")
}

// Source is where an installed plugin came from.
type Source struct {
	Archive string // hex SHA-256
	Address string // empty for a file
	Signer  *Key   // the known key that has signed it; nil without one
}

// Source returns where the plugin in a folder came from. It looks at none of its files but the archive. The error is
// archive.ErrNotInstalled for one that was not installed from an archive.
func (k *Keys) Source(name, dir string) (Source, error) {
	f, from, err := archive.OpenRecord(dir)
	if err != nil {
		return Source{}, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return Source{}, err
	}
	s := Source{Archive: hex.EncodeToString(sum.Sum(nil)), Address: from.Address}
	if k.signed(name, dir, from, s.Archive) == nil {
		key := k.of[name]
		s.Signer = &key
	}
	return s, nil
}

// signed returns why the archive that a plugin was installed from is not signed by the key that is known for it. sum is
// the hex SHA-256 of what the caller has read of the archive.
func (k *Keys) signed(name, dir string, from archive.Origin, sum string) error {
	text := from.Signature
	key, known := k.Of(name)
	switch {
	case text == nil:
		return hint.Errorf("ask its author for a signature, and install it again with it and --replace",
			"plugin %s is not signed", name)
	case !known && k.File() == "":
		return hint.Errorf(noFolder, "plugin %s is signed, and there is no folder for the keys of plugins", name)
	case !known:
		return hint.Errorf(
			fmt.Sprintf("ask its author for the key, and write it to %s: %s KEY", hint.Path(k.file), name),
			"plugin %s is signed, and no key is known for it", name)
	}
	f, _, err := archive.OpenRecord(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	err = Verify(f, text, key, sum)
	if other, states := Stated(text); errors.Is(err, ErrNotSigned) && states && !other.Equal(key) {
		return k.OtherKey(name)
	}
	if err != nil {
		return hint.Errorf(installAgain(), "plugin %s: %w", name, err)
	}
	return nil
}

// Require returns an error unless a plugin is signed by the key that is known for it, and unchanged since it was
// installed.
func (k *Keys) Require(name, dir string) error {
	t := k.Examine(name, dir)
	if t.Changed != nil {
		return t.Changed
	}
	return t.Unsigned
}
