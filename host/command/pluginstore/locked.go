package pluginstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// InstallLocked installs the plugins of a plugins.lock that are not there yet, each from the archive that the lock has
// the hash of: one of the given files, of the index, or of the address that it came from. The options are those of
// Install, but for What and Key. All plugins are looked at, and the error names those that could not be installed.
func InstallLocked(ctx context.Context, out io.Writer, lockFile string, archives []string, o InstallOptions) error {
	if o.download == nil {
		o.download = newDownloader()
	}
	lock, err := catalog.ReadLock(lockFile)
	if err != nil {
		return exit.Refused(fmt.Errorf("--locked: %w", err))
	}
	keys, err := signature.LoadKeys()
	if err != nil {
		return exit.Refused(err)
	}
	given, err := o.given(ctx, lock, archives)
	if err != nil {
		return exit.Refused(err)
	}
	var errs []error
	for _, p := range lock.Plugins {
		if ctx.Err() != nil {
			return exit.ErrInterrupted
		}
		if o.isThere(&p) {
			visible.Fprintf(out, "%s %s: there already\n", p.Name, p.Version)
			continue
		}
		s, err := sourceOf(&p, given)
		if err == nil {
			err = o.installFrom(ctx, out, s, keys)
		}
		errs = append(errs, err)
	}
	return exit.Refused(errors.Join(errs...))
}

// given returns the archives that there are, by their hex SHA-256: of the index, only those that the lock needs.
func (o *InstallOptions) given(ctx context.Context, lock *catalog.Lock, archives []string) (map[string]source, error) {
	all := map[string]source{}
	if o.Index != "" {
		ix, err := o.download.readIndex(ctx, o.Index)
		if err != nil {
			return nil, err
		}
		for i := range ix.Plugins {
			sum := ix.Plugins[i].SHA256
			if !slices.ContainsFunc(lock.Plugins, func(p catalog.Locked) bool { return p.Archive == sum }) {
				continue
			}
			s, err := ix.Plugins[i].source(o.Index)
			if err != nil {
				return nil, err
			}
			all[s.sum] = s
		}
	}
	for _, file := range archives {
		if isAddress(file) {
			return nil, exit.Usage(fmt.Errorf("%s: with --locked, the archives are files", file),
				"download it, or leave it out: the lock has the addresses")
		}
		a, err := o.download.get(ctx, source{place: file})
		if err != nil {
			return nil, err
		}
		all[a.content.Sum] = source{place: file, sum: a.content.Sum}
		if err := a.done(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isThere reports whether the folder of plugins has the plugin of a lock.
func (o *InstallOptions) isThere(p *catalog.Locked) bool {
	entries, err := catalog.Scan(o.Plugins)
	if err != nil {
		return false
	}
	for i := range entries {
		if e := &entries[i]; e.Name() == p.Name && e.Startable() {
			lines, err := p.Differences(e)
			return err == nil && lines == nil
		}
	}
	return false
}

// sourceOf says where the archive of a plugin is.
func sourceOf(p *catalog.Locked, given map[string]source) (source, error) {
	if p.Archive == "" {
		advice := "ask the author of the run for the plugin"
		if catalog.Comes(p.Name) {
			advice = catalog.Advice()
		}
		return source{}, hint.Errorf(advice, "plugin %s %s was not installed from an archive in that run", p.Name,
			p.Version)
	}
	s, ok := given[p.Archive]
	if !ok {
		if p.URL == "" {
			return s, hint.Errorf("ask the author of the run for the archive, and name it",
				"plugin %s %s: its archive, with the SHA-256 %s, is none of the given ones", p.Name, p.Version,
				p.Archive)
		}
		s = source{place: p.URL, sum: p.Archive}
	}
	s.name, s.version = p.Name, p.Version
	if p.Signer != "" && s.signer == nil {
		key, err := signature.ParseKey(p.Signer)
		if err != nil {
			return s, fmt.Errorf("plugin %s: %w", p.Name, err)
		}
		s.signer = &key
	}
	return s, nil
}
