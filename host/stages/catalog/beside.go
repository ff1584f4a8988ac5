package catalog

import (
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Advice says how to name a folder of plugins, and names the one that was built with the program, if it is there.
func Advice() string {
	const advice = "name the folder that has a folder for each plugin with --plugins"
	if built := builtFolder(); built != "" {
		return advice + "; those that come with the program: --plugins " + hint.Path(built)
	}
	return advice
}

// builtFolder is the folder of the plugins that were built with the program, or empty.
func builtFolder() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return ""
	}
	built := filepath.Join(filepath.Dir(filepath.Dir(program)), "plugins")
	if _, err := files.Stat(filepath.Join(built, "features", manifest.PluginFile)); err != nil {
		return ""
	}
	return built
}
