package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// consent are the settings that need the user's own word when a run folder names them: code that is executed (programs
// of plugins, a library, a command), and folders that a run writes to and removes from. The other settings that name a
// place are only read, or are in ofOneRun. Data folders, which only stages read, are listed by dataFolders.
var consent = []string{"plugins", "ort-lib", "recognizer", "cache-dir", "feature-cache"}

// confirmedFile lists in the cache folder what this user's own command lines have named: a setting and a quoted path on
// each line.
const (
	confirmedFile = "confirmed"
	maxConfirmed  = 1 << 20
)

// checkRunFile refuses code, caches and data folders that only the config.yaml of a run folder names. The folder may
// come from someone else. Resuming a run must not execute what its author has put there, nor write to a folder that its
// author has chosen, nor give the stages files of this user that its author has chosen. A command without the flag does
// not use the setting, and leaves it out.
func checkRunFile(s *Set) error {
	var named, flags []string
	known := confirmed(s)
	what := map[string]bool{}
	for _, p := range consents(s) {
		if !p.fromRun || p.path == "" || p.standard || slices.Contains(known, confirmation(p.setting, p.path)) ||
			isOwnCache(s, p.setting, p.path) {
			continue
		}
		if s.Only != nil && !slices.Contains(s.Only, p.setting) {
			if err := p.leaveOut(); err != nil {
				return err
			}
			continue
		}
		what[p.kind()] = true
		named = append(named, key(p.setting)+": "+p.named)
		flags = append(flags, "--"+p.setting+" "+hint.Path(p.named))
	}
	if named == nil {
		return nil
	}
	advice := "if you trust it, confirm it with " + strings.Join(flags, " ")
	dir := s.flags.Lookup("cache-dir").Value.String()
	if fromRunFile(s, "cache-dir") && dir != "" && !slices.Contains(flags, cacheFlag(dir)) {
		advice += ", or repeat " + cacheFlag(dir) + " of the first run"
	}
	return hint.Errorf(advice, "%s names %s that no command line of yours has used: %s%s", runFile(s),
		strings.Join(slices.Sorted(maps.Keys(what)), " or "), strings.Join(named, ", "), lookedAt(s))
}

func cacheFlag(path string) string { return "--cache-dir " + hint.Path(path) }

// lookedAt names the file that lists what was confirmed.
func lookedAt(s *Set) string {
	dir, err := ownCache(s)
	if err != nil {
		return ""
	}
	return " (the used ones are in " + filepath.Join(dir, confirmedFile) + ")"
}

// consented is a value of one of the settings that need the user's word.
type consented struct {
	setting, path string
	named         string // the value of the flag that names it
	fromRun       bool   // only the file of the run names it
	standard      bool   // it is the default
	leaveOut      func() error
}

func (c *consented) kind() string {
	if c.setting == pluginData {
		return "a data folder"
	}
	return "code or a cache"
}

// consents lists what the settings name that needs the user's word.
func consents(s *Set) (all []consented) {
	for _, name := range consent {
		f := s.flags.Lookup(name)
		path := f.Value.String()
		all = append(all, consented{
			setting: name, path: path, named: path, fromRun: fromRunFile(s, name),
			standard: f.DefValue != "" && absolute(path) == absolute(f.DefValue),
			leaveOut: func() error {
				delete(s.origins, name)
				return f.Value.Set(f.DefValue)
			},
		})
	}
	return append(all, dataFolders(s)...)
}

// isOwnCache reports whether a path is a cache already, which belongs to this user alone: nothing foreign is in danger.
// So a run of a version that did not ask for its caches resumes. What is compiled for a GPU is not taken from there. A
// cache in the run folder, or with links, may have come with the run: files of an unpacked archive belong to this user,
// too.
func isOwnCache(s *Set, name, path string) bool {
	known := map[string]cachedir.Recognise{"cache-dir": isCache, "feature-cache": featurecache.Recognise}[name]
	if known == nil || !isOwn(path) || isInside(path, s.Resume) || hasLinks(path) {
		return false
	}
	state, err := cachedir.Look(path, known)
	if err != nil || state != cachedir.Own && state != cachedir.Adopted {
		return false
	}
	s.CacheUnconfirmed = s.CacheUnconfirmed || name == "cache-dir"
	return true
}

// isInside reports whether a path leads to a folder or into it. It is true if that cannot be determined.
func isInside(path, folder string) bool {
	of := func(path string) (string, error) {
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(path)
	}
	inner, err := of(path)
	outer, otherErr := of(folder)
	rel, relErr := filepath.Rel(outer, inner)
	return errors.Join(err, otherErr, relErr) != nil || filepath.IsLocal(rel)
}

// hasLinks reports whether a cache, which has no links itself, has one.
func hasLinks(dir string) bool {
	entries, err := files.In(dir).ReadDir()
	return err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Type()&os.ModeSymlink != 0 })
}

// isOwn reports whether no one else owns a path or can change it.
func isOwn(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && files.OtherOwner(path, os.Geteuid()) == ""
}

// Confirm remembers what the settings name, for runs that are resumed from another working directory. What a run folder
// names is not remembered. It fails where the cache folder cannot be written; then flags confirm it again.
func Confirm(s *Set) error {
	dir, err := ownCache(s)
	if err != nil {
		return err
	}
	known, add := confirmed(s), ""
	for _, p := range consents(s) {
		if line := confirmation(p.setting, p.path); p.path != "" && !p.fromRun && !slices.Contains(known, line) &&
			!strings.Contains(add, line+"\n") {
			add += line + "\n"
		}
	}
	if add == "" {
		return nil
	}
	given := s.CacheDir
	if fromRunFile(s, "cache-dir") {
		given = ""
	}
	if _, err := cachedir.Claim(dir, recognise(given)); err != nil {
		return err
	}
	f, err := files.In(dir, confirmedFile).Append()
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(add))
	return errors.Join(f.Chmod(0o600), err, f.Close())
}

// confirmation is a line of the file.
func confirmation(name, path string) string {
	if name == "recognizer" { // a command, which is the same anywhere
		return fmt.Sprintf("%s %s", name, strconv.Quote(path))
	}
	return fmt.Sprintf("%s %s", name, strconv.Quote(absolute(path)))
}

// confirmed returns the lines of the file. A file that someone else can have written counts for nothing.
func confirmed(s *Set) []string {
	dir, err := ownCache(s)
	if err != nil {
		return nil
	}
	path := filepath.Join(dir, confirmedFile)
	if !isOwn(path) || files.OtherOwner(dir, os.Geteuid()) != "" {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return nil
	}
	data, err := files.At(path).Read(maxConfirmed)
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
	return cachePath(given)
}

// runFile is the config.yaml of the run that is resumed.
func runFile(s *Set) string { return filepath.Join(s.Resume, rundir.SettingsFile) }

func fromRunFile(s *Set, name string) bool { return s.Resume != "" && s.origins[name] == runFile(s) }
