package plugintest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Options are the arguments of `xtts-host plugins test`.
type Options struct {
	Names    []string          // folders of plugins, or plugins of the folder Plugins
	Plugins  string            // folder of plugins
	Graph    string            // bundle whose features and shapes the batches have
	CacheDir string            // of embedded bundles
	Stage    string            // the only one to test, or empty
	ORTLib   string            // path of ONNX Runtime's library, or empty
	Values   map[string]any    // of the configuration
	Data     map[string]string // data folders by NAME or STAGE.NAME
	Sandbox  sandbox.Mode
	JSON     bool
}

// List is the output of `xtts-host plugins test --json`.
type List struct {
	Version int       `json:"version"`
	Plugins []*Result `json:"plugins"`
}

// Command tests the named plugins and writes the results. A check that failed is an error.
func Command(ctx context.Context, out io.Writer, o Options) error {
	cache, err := config.CacheFolder(o.CacheDir)
	if err != nil {
		return exit.Refused(err)
	}
	bundle, err := ortgraphs.Open(o.Graph, cache)
	if err != nil {
		return exit.Refused(err)
	}
	library, err := ort.Find(ort.Options{Library: o.ORTLib})
	if err != nil {
		library = "" // most stages need none; one that does says so
	}
	list := List{Version: 1, Plugins: []*Result{}}
	var faults []error
	for _, name := range o.Names {
		entry, err := findPlugin(name, o.Plugins)
		if err != nil {
			return exit.Refused(err)
		}
		r, err := Run(ctx, Config{
			Plugin: *entry, Bundle: bundle, Stage: o.Stage, Values: o.Values, Data: o.Data, ORTLibrary: library,
			Sandbox: o.Sandbox, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return exit.Refused(fmt.Errorf("plugin %s: %w", entry.Name(), err))
		}
		if list.Plugins = append(list.Plugins, r); !o.JSON {
			r.Print(out)
		}
		if n := r.Failed(); n > 0 {
			faults = append(faults, supervise.Violation(entry.Name(), fmt.Errorf("failed checks: %d", n)))
		}
	}
	if o.JSON {
		if err := report.JSON(out, list); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return faults[0]
	}
	return nil
}

const whichFolder = "name the folder of the plugin, or the folder that it is in with --plugins"

// among is the hint for the name of a folder that has plugins and is none, or empty.
func among(name string) string {
	entries, err := catalog.Scan(name)
	for _, e := range entries {
		if err == nil && e.Manifest != nil {
			return fmt.Sprintf("%s is a folder of plugins: name one of them, as in %s", hint.Path(name), hint.Command(
				fmt.Sprintf("plugins test %s --plugins %s", e.Name(), hint.Path(name))))
		}
	}
	return ""
}

// findPlugin returns the plugin of a folder, or the one of that name in a folder of plugins. It can be started.
func findPlugin(name, plugins string) (*catalog.Entry, error) {
	var found *catalog.Entry
	if _, err := os.Stat(filepath.Join(name, manifest.PluginFile)); err == nil {
		entry, err := catalog.Open(name)
		if err != nil {
			return nil, err
		}
		found = &entry
	} else {
		within := among(name)
		entries, err := catalog.Scan(plugins)
		if err != nil {
			return nil, hint.Errorf(cmp.Or(within, hint.Of(err), whichFolder),
				"%s has no %s, and --plugins cannot be read: %w", name, manifest.PluginFile, err)
		}
		var names []string
		stageOf := "" // the plugin with a stage of that name
		for i, e := range entries {
			if e.Manifest != nil {
				names = append(names, e.Name())
				if slices.ContainsFunc(e.Manifest.Stages, func(s manifest.Stage) bool { return s.Name == name }) {
					stageOf = fmt.Sprintf("%s is a stage: %s", name, hint.Command(
						fmt.Sprintf("plugins test %s --plugins %s --stage %s", e.Name(), hint.Path(plugins), name)))
				}
			}
			if e.Name() == name || filepath.Base(e.Dir) == name {
				found = &entries[i]
			}
		}
		if found == nil {
			return nil, hint.Errorf(cmp.Or(within, stageOf, hint.DidYouMean(name, names), whichFolder),
				"%s is neither a folder with %s nor a plugin in %s", name, manifest.PluginFile, plugins)
		}
	}
	if !found.Startable() {
		return nil, hint.Errorf(found.Hint, "plugin %s is %s: %s", found.Dir, found.State, found.Reason)
	}
	return found, nil
}
