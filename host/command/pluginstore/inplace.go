package pluginstore

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// checkPlace refuses a plugin that is there already, unless it may be replaced, and the name of one that comes with the
// program. It returns what a replacement removes besides the files of the archive that is there.
func (o *InstallOptions) checkPlace(name string) (lost []string, err error) {
	if catalog.Comes(name) {
		return nil, hint.Errorf("ask its author to give it another name",
			"%s is the name of a plugin that comes with xtts-host", name)
	}
	folder := files.In(o.Plugins, name)
	_, err = folder.Lstat()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if errors.Is(err, files.ErrLink) {
			return nil, hint.Errorf("remove the link, or name another folder with --plugins",
				"%s is a link, which is not replaced", folder)
		}
		return nil, err
	}
	there := err == nil
	if entries, err := catalog.Scan(o.Plugins); err == nil {
		for _, e := range entries {
			if e.Manifest != nil && e.Manifest.ID == name && filepath.Base(e.Dir) != name {
				return nil, hint.Errorf("remove it, or name another folder with --plugins",
					"plugin %s is there already: %s", name, e.Dir)
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Advise(err, "name the folder that has a folder for each plugin, with --plugins")
	}
	if !there {
		return nil, nil
	}
	if !isInstalled(folder) {
		return nil, hint.Errorf("move the folder away, or name another one with --plugins",
			"%s is there already, and was not installed from an archive: it is not replaced", folder)
	}
	if !o.Replace {
		return nil, hint.Errorf("--replace puts the archive in its place", "plugin %s is installed already: %s", name,
			folder)
	}
	return besides(folder, name)
}

// besides lists what a folder has besides the files that were installed. It refuses the folder of another plugin.
func besides(folder files.Path, name string) (list []string, err error) {
	installed, err := archive.Check(folder.String())
	switch {
	case err != nil:
		list = []string{"all of " + folder.String() + ", which cannot be compared with its archive: " + err.Error()}
	case installed.Index.Name != name:
		return nil, hint.Errorf("move the folder away, or name another one with --plugins",
			"%s has the plugin %s: it is not replaced", folder, installed.Index.Name)
	default:
		list = installed.Changes
	}
	entries, err := folder.ReadDir()
	for _, e := range entries {
		at := e.Name()
		if archive.Made(at) && at != archive.Record && at != "__pycache__" && !e.Type().IsRegular() {
			list = append(list, at+", which was made after the installation")
		}
	}
	return list, err
}

// isInstalled reports whether a folder was installed from an archive.
func isInstalled(folder files.Path) bool {
	info, err := folder.Join(archive.Record).Lstat()
	return err == nil && info.IsDir()
}
