package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Files inspects the files and folders that the settings name. It reads no data set and starts no plugin, which
// validate does. It does not inspect defaults, so doctor runs in any folder.
func Files(set *config.Set) []Finding {
	var list []Finding
	check := func(setting, value string, look func(path string) (string, error)) {
		if !set.Given(setting) || value == "" {
			return
		}
		name := "--" + setting + " " + value
		switch text, err := look(value); {
		case err != nil:
			list = append(list, Finding{Bad, name + ": " + exit.Text(err), exit.Hint(err)})
		default:
			list = append(list, Finding{OK, strings.TrimSuffix(name+": "+text, ": "), ""})
		}
	}
	c := &set.Config
	check("graph", c.Graph, func(spec string) (string, error) { return lookAtBundle(spec, c.CacheDir) })
	check("train-data", c.TrainData, lookAt)
	check("val-data", c.ValData, lookAt)
	check("plugins", c.Plugins, lookAtPlugins)
	check("augment", strings.Join(c.Augment, ","), func(string) (string, error) {
		entries, err := catalog.Scan(c.Plugins)
		if err == nil {
			_, err = catalog.Augment(nil, c.Augment, entries)
		}
		return "", err
	})
	check("resume", c.Resume, func(run string) (string, error) { return lookAt(filepath.Join(run, "checkpoints")) })
	check("init", c.Init, lookAt)
	return list
}

// lookAt checks that a file or folder exists, with any content.
func lookAt(path string) (string, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no %s", path)
	}
	return "", err
}

func lookAtBundle(spec, cache string) (string, error) {
	cache, err := config.CacheFolder(cache)
	if err != nil {
		return "", err
	}
	b, err := ortgraphs.Open(spec, cache)
	if err != nil {
		return "", err
	}
	return b.Manifest.Name, nil
}

// lookAtPlugins counts the plugins that can be started.
func lookAtPlugins(dir string) (string, error) {
	entries, err := catalog.Scan(dir)
	if err != nil {
		return "", err
	}
	n := 0
	for i := range entries {
		if entries[i].Startable() {
			n++
		}
	}
	if n == 0 {
		return "", hint.Errorf("xtts-host plugins list "+dir, "it has no plugin that can be started")
	}
	return report.Count(n, "plugin"), nil
}
