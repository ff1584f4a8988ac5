package pluginstore

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/signature"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// ErrChanged means that a plugin is not as it was installed.
var ErrChanged = exit.New(exit.StatusPlugin, "not as installed")

// Verify compares installed plugins with the archives that they came from, and prints a line for each. Without a name
// it looks at all of a folder. The error wraps ErrChanged if one of them differs.
func Verify(out io.Writer, plugins, name string, requireSignatures bool) error {
	keys, err := signature.LoadKeys()
	if err != nil {
		return exit.Refused(err)
	}
	entries, err := catalog.Scan(plugins)
	if err != nil {
		return exit.Refused(exit.Advise(err, "name the folder that has a folder for each plugin, with --plugins"))
	}
	seen, bad := 0, []string{}
	for _, e := range entries {
		if e.State == catalog.Skipped || name != "" && e.Name() != name {
			continue
		}
		seen++
		t := keys.Examine(e.Name(), e.Dir)
		problem := t.Changed
		switch {
		case problem != nil:
		case requireSignatures:
			problem = catalog.RequireSigned([]catalog.Entry{e})
		case name != "" && t.Installed == nil, t.Installed != nil && t.Installed.Signature != nil:
			problem = t.Unsigned
		}
		if problem == nil {
			visible.Fprintf(out, "%s %s: %s\n", e.Name(), version(e), t.Words())
			continue
		}
		bad = append(bad, e.Name())
		visible.Fprintf(out, "%s\n", problem)
		if advice := hint.Of(problem); advice != "" {
			visible.Fprintf(out, "  hint: %s\n", advice)
		}
	}
	switch {
	case seen == 0 && name != "":
		return notThere(plugins, name)
	case len(bad) > 0:
		return hint.Errorf("the lines above say what differs, and what to do", "%s %w: %s",
			units.Count(len(bad), "plugin"), ErrChanged, strings.Join(bad, ", "))
	}
	return nil
}

func version(e catalog.Entry) string {
	if e.Manifest == nil {
		return "without a readable manifest"
	}
	return e.Manifest.Version
}

func notThere(plugins, name string) error {
	return exit.Refused(hint.Errorf("the plugins there: "+hint.Command("plugins list "+hint.Path(plugins)),
		"%s has no plugin %s", plugins, name))
}

// Remove removes an installed plugin. One whose files have changed is removed only if force says so.
func Remove(out io.Writer, plugins, name string, force bool) (err error) {
	if name == "" || strings.ContainsAny(name, "/\\") || name[0] == '.' {
		return exit.Usage(fmt.Errorf("%q is not the name of a plugin", name),
			"name a plugin of "+hint.Command("plugins list"))
	}
	folder := files.In(plugins, name)
	info, err := folder.Lstat()
	switch {
	case err == nil && info.IsDir() && isInstalled(folder):
	case errors.Is(err, files.ErrLink) || err == nil:
		return exit.Refused(hint.Errorf("remove it by hand, if you have it elsewhere",
			"%s was not installed from an archive", folder))
	default:
		return notThere(plugins, name)
	}
	installed, err := archive.Check(folder.String())
	if err == nil && len(installed.Changes) > 0 {
		err = errors.New(strings.Join(installed.Changes, ", "))
	}
	if err != nil && !force {
		return exit.Refused(hint.Errorf("--force removes it with what has changed",
			"plugin %s has changed since it was installed: %w", name, err))
	}
	// In one step first: an interruption leaves no half of a plugin.
	beside, lock, err := files.In(plugins).Temp(work, "")
	if err != nil {
		return exit.Advise(err, "make the folder of plugins writable for you")
	}
	defer func() { err = errors.Join(err, beside.RemoveAll(), closeLock(lock)) }()
	if err := folder.Rename(beside.Join(name)); err != nil {
		return err
	}
	_, err = visible.Fprintf(out, "removed  %s; its key stays known\n", folder)
	return err
}
