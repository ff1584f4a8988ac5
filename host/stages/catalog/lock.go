package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Lock says which plugins a run has used. It is plugins.lock of the run folder.
type Lock struct {
	Format  int      `json:"format"` // 1
	Plugins []Locked `json:"plugins"`
}

// Locked is a plugin of a run.
type Locked struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Identity is the hex SHA-256 of what it computes with (Entry.Identity), by which a run knows a plugin.
	Identity string `json:"identity"`
	// Archive is the hex SHA-256 of the archive that it was installed from, URL the address that this came from, and
	// Signer the known key that has signed it; each empty without one.
	Archive string            `json:"archive,omitempty"`
	URL     string            `json:"url,omitempty"`
	Signer  string            `json:"signer,omitempty"`
	Files   map[string]string `json:"files"` // hex SHA-256 by name: those that plugin.sum lists, or all
}

// MaxLock bounds the size of a lock in bytes.
const MaxLock = 64 << 20

const lockFormat = 1

// LockOf describes plugins for plugins.lock.
func LockOf(plugins []Entry) (*Lock, error) {
	keys, _ := signature.LoadKeys() // nil without them: then no signer is known
	lock := &Lock{Format: lockFormat, Plugins: []Locked{}}
	for i := range plugins {
		e := &plugins[i]
		identity, err := e.Identity()
		if err != nil {
			return nil, err
		}
		l := Locked{Name: e.Manifest.ID, Version: e.Manifest.Version, Identity: identity}
		if l.Files, err = e.sumsOf(); err != nil {
			return nil, err
		}
		if from, err := keys.Source(l.Name, e.Dir); err == nil { // what cannot be read is not known
			l.Archive, l.URL = from.Archive, from.Address
			if from.Signer != nil {
				l.Signer = from.Signer.String()
			}
		}
		lock.Plugins = append(lock.Plugins, l)
	}
	return lock, nil
}

// sumsOf returns the hex SHA-256 of the files that plugin.sum lists, or of all, by their names.
func (e *Entry) sumsOf() (map[string]string, error) {
	if e.State == Unverified {
		if _, err := e.Contents(); err != nil {
			return nil, err
		}
	}
	return e.sums, nil
}

// Text is the content of plugins.lock.
func (l *Lock) Text() ([]byte, error) {
	text, err := json.MarshalIndent(l, "", "  ")
	return append(text, '\n'), err
}

// ReadLock reads a file that Text has made, which a person has named.
func ReadLock(file string) (*Lock, error) {
	text, err := files.Read(file, MaxLock)
	if errors.Is(err, fs.ErrNotExist) {
		err = hint.Errorf("name the plugins.lock of a run folder", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return ParseLock(file, text)
}

// ParseLock parses what Text has made. file is only used in messages.
func ParseLock(file string, text []byte) (*Lock, error) {
	l := new(Lock)
	err := json.Unmarshal(text, l)
	if err == nil && l.Format != lockFormat {
		err = fmt.Errorf("format %d, and this host reads %d", l.Format, lockFormat)
	}
	if err != nil {
		return nil, hint.Errorf("name the plugins.lock of a run folder", "%s: not a lock of plugins: %w", file, err)
	}
	return l, nil
}

// Plugin returns the plugin of a name.
func (l *Lock) Plugin(name string) (Locked, bool) {
	i := slices.IndexFunc(l.Plugins, func(p Locked) bool { return p.Name == name })
	if i < 0 {
		return Locked{}, false
	}
	return l.Plugins[i], true
}

// Differences says how a plugin differs from the one of the lock: nothing if it computes with the same.
func (p *Locked) Differences(e *Entry) (lines []string, err error) {
	identity, err := e.Identity()
	if err != nil {
		return nil, err
	}
	if identity == p.Identity && e.Manifest.Version == p.Version {
		return nil, nil
	}
	if e.Manifest.Version != p.Version {
		lines = append(lines, fmt.Sprintf("version: %s -> %s", p.Version, e.Manifest.Version))
	}
	now, err := e.sumsOf()
	if err != nil {
		return nil, err
	}
	all := maps.Clone(p.Files)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case now[name] == "":
			lines = append(lines, "removed: "+name)
		case p.Files[name] == "":
			lines = append(lines, "added: "+name)
		case now[name] != p.Files[name]:
			lines = append(lines, "changed: "+name)
		}
	}
	if lines == nil {
		lines = []string{"other sources"}
	}
	return lines, nil
}

// Require returns an error that names each plugin that is not the one of the lock, with what differs. file is its name.
func (l *Lock) Require(file string, plugins []Entry) error {
	var errs []error
	for i := range plugins {
		e := &plugins[i]
		p, ok := l.Plugin(e.Name())
		if !ok {
			errs = append(errs, fmt.Errorf("plugin %s is not in %s", e.Name(), file))
			continue
		}
		lines, err := p.Differences(e)
		if err == nil && lines != nil {
			const most = 5
			if more := len(lines) - most; more > 0 {
				lines = append(lines[:most:most], fmt.Sprintf("%d more", more))
			}
			err = fmt.Errorf("plugin %s differs from %s: %s", e.Name(), file, strings.Join(lines, ", "))
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return hint.Errorf("install what it names: "+hint.Command("plugins install --locked "+hint.Path(file)), "%w",
			err)
	}
	return nil
}

// RequireLocked is Require for the lock in a file.
func RequireLocked(file string, plugins []Entry) error {
	l, err := ReadLock(file)
	if err != nil {
		return fmt.Errorf("--plugins-lock: %w", err)
	}
	return l.Require(file, plugins)
}
