package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Programs returns the folders that a process reads to find its interpreter, its libraries and the programs that it
// starts: those of the paths in PATH and LD_LIBRARY_PATH of its environment, what shims in PATH start, the program
// itself, and the Python environments that the program, PATH and the folder .venv of the plugin lead to. home is the
// home folder, of which nothing but such folders is included.
func Programs(program, folder string, environment []string, home string) []string {
	s := search{home: resolved(home)}
	s.add(program)
	s.python(program)
	for _, name := range []string{"python", "python3"} {
		s.python(filepath.Join(folder, ".venv", "bin", name))
	}
	for _, kv := range environment {
		key, value, _ := strings.Cut(kv, "=")
		for _, dir := range filepath.SplitList(value) {
			switch {
			case !filepath.IsAbs(dir):
			case key == "LD_LIBRARY_PATH":
				s.folder(dir)
			case key == "PATH":
				s.folder(dir)
				prefix := filepath.Dir(filepath.Clean(dir))
				if filepath.Base(dir) == "shims" { // of pyenv: scripts that start programs of the folder around them
					s.folder(prefix)
				}
				if filepath.Base(dir) == "bin" && !within(s.home, prefix) {
					s.folder(filepath.Join(prefix, "lib"))
					s.folder(filepath.Join(prefix, "lib64"))
				}
				for _, name := range []string{"python", "python3"} {
					s.python(filepath.Join(dir, name))
				}
			}
		}
	}
	return s.found
}

// search collects folders.
type search struct {
	home  string
	found []string
}

func (s *search) add(path string) {
	if path != "" && !slices.Contains(s.found, path) {
		s.found = append(s.found, path)
	}
}

// folder adds a folder, unless it is the home folder or one that it is in.
func (s *search) folder(path string) {
	if at := resolved(path); at != "" && !within(s.home, at) {
		s.add(at)
	}
}

// python adds the environments of an interpreter: the virtual one that the path is in, and that of the program that it
// leads to. A file that is in no environment adds nothing, so that a link in a plugin's folder opens no other folder.
func (s *search) python(program string) {
	at := resolved(program)
	if at == "" {
		return
	}
	virtual := filepath.Dir(filepath.Dir(program))
	for _, prefix := range []string{virtual, homeOf(virtual), filepath.Dir(filepath.Dir(at))} {
		if isPython(prefix) {
			s.folder(prefix)
		}
	}
}

// homeOf is the environment that a virtual one was made from, by its pyvenv.cfg, or empty.
func homeOf(virtual string) string {
	text, _ := os.ReadFile(filepath.Join(virtual, "pyvenv.cfg"))
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "home" {
			return filepath.Dir(strings.TrimSpace(value)) // home is the folder of the program
		}
	}
	return ""
}

// isPython reports whether a folder is an environment of Python: a virtual one, or one with the standard library.
func isPython(prefix string) bool {
	if !filepath.IsAbs(prefix) {
		return false
	}
	library, _ := filepath.Glob(filepath.Join(prefix, "lib", "python3*", "os.py"))
	return len(library) > 0 || exists(filepath.Join(prefix, "pyvenv.cfg"))
}

// resolved is a path without links, or empty.
func resolved(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil && path != "" {
		return at
	}
	return ""
}

// within reports whether a path is a folder or below it. Both are absolute and clean.
func within(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}
