package supervise

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/socketdir"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// confined reports whether the processes are confined.
func (c *Config) confined() bool { return c.Sandbox != sandbox.Off }

// allowed is what confined processes may do besides using files, or nil if they are not confined.
func (c *Config) allowed() *sandbox.Policy {
	if !c.confined() {
		return nil
	}
	return &sandbox.Policy{Network: c.Plugin.Manifest.Network, GPU: c.Configure.GetDeviceUuid() != ""}
}

// confine changes the command so that its process is confined. The command has its environment and descriptors. sockets
// is the folder in which the process listens.
func (p *process) confine(cmd *exec.Cmd, sockets string) (err error) {
	policy := p.cfg.allowed()
	if policy == nil {
		return nil
	}
	policy.MaxTasks, policy.LargestFile = p.cfg.tasks, int64(p.cfg.Ring.Slots())*int64(p.cfg.Ring.SlotSize())
	policy.Read, policy.Write = p.cfg.readable(), append(namedByUser(cmd.Env), sockets)
	if p.temp != nil {
		policy.Write = append(policy.Write, p.temp.folder.String())
	}
	p.child.launch, err = sandbox.Wrap(cmd, *policy, p.cfg.Sandbox)
	return err
}

// namedByUser are the files and folders that variables for plugins name: the caches of CUDA's driver, and what the
// user names for authors. Plugins may write there.
func namedByUser(environment []string) (paths []string) {
	for _, kv := range environment {
		key, value, _ := strings.Cut(kv, "=")
		if filepath.IsAbs(value) && (key == "CUDA_CACHE_PATH" ||
			slices.ContainsFunc(inheritedPrefixes, func(p string) bool { return strings.HasPrefix(key, p) })) {
			paths = append(paths, value)
		}
	}
	return paths
}

// readablePaths are what the processes may read: the plugin's folder, its programs and libraries, and what was named.
func (c *Config) readablePaths() []string {
	return slices.Concat([]string{c.Plugin.Dir}, c.namedPaths(), librariesBeside(c.ORTLibrary),
		sandbox.Programs(c.Plugin.Command[0], c.Plugin.Dir, os.Environ(), os.Getenv("HOME")))
}

// namedPaths are the files and folders that the pipeline and plugin.json name: data folders with what their files are
// links to, files of the bundle, and folders of the manifest.
func (c *Config) namedPaths() []string {
	paths := slices.Clone(c.Plugin.Manifest.Folders)
	for _, file := range c.Configure.GetFiles() {
		paths = append(paths, file)
	}
	for _, i := range c.Configure.GetInstances() {
		for _, data := range i.Data {
			paths = append(paths, data.Path)
			folders := map[string]string{} // real paths, by the paths of folders
			root := realPath(folders, data.Path)
			for _, file := range data.Files {
				path := filepath.Join(data.Path, file.Name)
				at := filepath.Join(realPath(folders, filepath.Dir(path)), filepath.Base(path))
				if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
					at = realPath(map[string]string{}, at)
				}
				if !strings.HasPrefix(at, root+"/") {
					paths = append(paths, at)
				}
			}
		}
	}
	return paths
}

// realPath is the path without links, from what is known or from the file system.
func realPath(known map[string]string, path string) string {
	at, ok := known[path]
	if !ok {
		var err error
		if at, err = filepath.EvalSymlinks(path); err != nil {
			at = path
		}
		known[path] = at
	}
	return at
}

// librariesBeside are the shared libraries in the folder of a library, and in that of the file that it is a link to:
// ONNX Runtime loads others from there, among them what `xtts-host fetch cuda` has downloaded.
func librariesBeside(library string) (all []string) {
	if library == "" {
		return nil
	}
	for _, path := range []string{library, realPath(map[string]string{}, library)} {
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "lib*.so*"))
		all = append(all, found...)
	}
	return all
}

// tempDir is the folder for temporary files of one process, which is its home folder as well.
type tempDir struct {
	folder files.Path
	lock   io.Closer
}

// tempPrefix begins the names of these folders.
const tempPrefix = "xtts-plugin-tmp-"

func newTempDir() (*tempDir, error) {
	folder, lock, err := files.In(socketdir.TempDir()).Temp(tempPrefix, "")
	if err != nil {
		return nil, hint.Errorf("set TMPDIR to a folder that can be written", "%w", err)
	}
	return &tempDir{folder, lock}, nil
}

// remove removes the folder. What cannot be removed, the next host removes.
func (d *tempDir) remove() {
	if d != nil {
		_ = d.folder.RemoveAll()
		d.lock.Close()
	}
}

// Sweep removes the folders that hosts have left that were killed: those of sockets, and those for temporary files.
// Each start of a pool does so.
func Sweep() {
	socketdir.Sweep(longestSocket)
	files.In(socketdir.TempDir()).Sweep(func(name string) bool { return strings.HasPrefix(name, tempPrefix) })
}

// inTemp replaces the folders in an environment that a confined process cannot use. Python still finds what
// `pip install --user` has put below the home folder.
func (d *tempDir) inTemp(environment []string) []string {
	if d == nil {
		return environment
	}
	var kept []string
	for _, kv := range environment {
		switch key, value, _ := strings.Cut(kv, "="); {
		case key == "HOME" && filepath.IsAbs(value):
			kept = append(kept, "PYTHONUSERBASE="+filepath.Join(value, ".local"))
		case key != "HOME" && key != "TMPDIR":
			kept = append(kept, kv)
		}
	}
	return append(kept, "HOME="+d.folder.String(), "TMPDIR="+d.folder.String())
}
