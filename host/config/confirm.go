package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/regular"
)

// code are the settings that name executed code: the programs of plugins, and a library.
var code = []string{"plugins", "ort-lib"}

// confirmedFile lists in the cache folder the code that this user's own command lines have named: a setting and a
// quoted path on each line.
const confirmedFile = "confirmed"

// checkRunFile refuses code that only the config.yaml of a run folder names. The folder may come from someone else, and
// resuming a run must not execute what its author has put there.
func checkRunFile(s *Set) error {
	var named, flags []string
	known := confirmed(s)
	for _, name := range code {
		if name == "plugins" && s.NoPlugins {
			continue
		}
		f := s.flags.Lookup(name)
		path := f.Value.String()
		if !fromRunFile(s, name) || path == "" || absolute(path) == absolute(f.DefValue) || slices.Contains(known, confirmation(name, path)) {
			continue
		}
		named = append(named, key(name)+": "+path)
		flags = append(flags, "--"+name+" "+hint.Path(path))
	}
	if named == nil {
		return nil
	}
	return hint.Errorf("if you trust it, confirm it with "+strings.Join(flags, " "),
		"%s names code that no command line of yours has used: %s", runFile(s), strings.Join(named, ", "))
}

// Confirm remembers the code that the settings name, for runs that are resumed from another working directory. What a
// run folder names is not remembered. It fails where the cache folder cannot be written; then flags confirm it again.
func Confirm(s *Set) error {
	known, add := confirmed(s), ""
	for _, name := range code {
		path := s.flags.Lookup(name).Value.String()
		if line := confirmation(name, path); path != "" && !fromRunFile(s, name) && !slices.Contains(known, line) {
			add += line + "\n"
		}
	}
	if add == "" {
		return nil
	}
	dir, err := ownCache(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, confirmedFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(add); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// confirmation is a line of the file.
func confirmation(name, path string) string {
	return fmt.Sprintf("%s %s", name, strconv.Quote(absolute(path)))
}

// confirmed returns the lines of the file. A file that someone else can have written counts for nothing.
func confirmed(s *Set) []string {
	dir, err := ownCache(s)
	if err != nil {
		return nil
	}
	path := filepath.Join(dir, confirmedFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return nil
	}
	data, err := regular.Read(path, 1<<20)
	if err != nil {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// ownCache returns the cache folder, but never one that only a run folder names: the author of the run folder has
// chosen its content.
func ownCache(s *Set) (string, error) {
	given := s.CacheDir
	if fromRunFile(s, "cache-dir") {
		given = ""
	}
	return CacheFolder(given)
}

// runFile is the config.yaml of the run that is resumed.
func runFile(s *Set) string { return filepath.Join(s.Resume, RunFile) }

func fromRunFile(s *Set, name string) bool { return s.Resume != "" && s.origins[name] == runFile(s) }
