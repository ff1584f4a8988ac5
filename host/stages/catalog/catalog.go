package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/release"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// State is what Scan found out about a folder.
type State string

// The states of a folder. Only verified and unverified plugins can be started.
const (
	Verified   State = "verified"   // every listed file has the sum in plugin.sum
	Unverified State = "unverified" // there is no plugin.sum
	Modified   State = "modified"   // plugin.sum and the files do not match
	NotBuilt   State = "not built"  // there is no program
	Broken     State = "broken"     // the manifest or the program is unusable
	Skipped    State = "skipped"    // not a plugin folder
)

// Entry is one folder in the plugins folder.
type Entry struct {
	// Dir is the absolute path of the folder, links resolved.
	Dir string
	// Manifest is nil for a skipped folder and for an unreadable manifest.
	Manifest *manifest.Plugin
	State    State
	// Reason says why the state is not Verified. Hint is the next step for the user, or empty.
	Reason string
	Hint   string
	// Command is the program with its arguments, to be run in Dir. Command[0] is an absolute path. It is empty if the
	// plugin cannot be started.
	Command []string
	// Sum is the hex SHA-256 of Command[0] in plugin.sum. It is empty without plugin.sum, and for the interpreter of a
	// script.
	Sum string

	gpuCommand, gpuSum string // like Command[0] and Sum, for the program for a GPU; empty without one

	sums    map[string]string // by the names of files: those of plugin.sum, or without it what Contents has read
	files   []string          // that determine what the plugin does, with those of plugin.sum
	sources string            // the hex SHA-256 in plugin.sum of what the plugin is built from

	contents string // once Contents has read the files
}

// OnGPU returns the entry with the program for a process that is given a GPU, if the plugin has a separate one. A
// program that is linked with the driver does not start without one. If the program for a GPU is named but missing,
// the entry keeps the other program: Resolve refuses it if the run has a data GPU and a stage in the pipeline uses it.
func (e Entry) OnGPU() Entry {
	if e.gpuCommand != "" {
		e.Command, e.Sum = []string{e.gpuCommand}, e.gpuSum
	}
	return e
}

// missingGPUProgram returns the path of the program for a GPU if the manifest of a startable plugin names it but it
// does not exist, or "". That is only an error if a process is given a GPU: the plugin may have been built for machines
// without one.
func (e *Entry) missingGPUProgram() string {
	if name := e.Manifest.GPUCommand(); name != "" && e.gpuCommand == "" {
		return filepath.Join(e.Dir, name)
	}
	return ""
}

// Name returns the plugin's id, or the folder's name if there is no readable manifest.
func (e *Entry) Name() string {
	if e.Manifest != nil {
		return e.Manifest.ID
	}
	return filepath.Base(e.Dir)
}

// Startable reports whether the plugin may be started.
func (e *Entry) Startable() bool { return e.State == Verified || e.State == Unverified }

// maxManifest bounds the size of plugin.json and plugin.sum.
const maxManifest = 1 << 20

// Scan reads <dir>/<name>/plugin.json for every subfolder of dir, in the order of their names. Every subfolder gets an
// Entry, even if it is not a plugin. Scan ignores plain files in dir. The error is about dir itself.
func Scan(dir string) ([]Entry, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of plugins: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, manifest.PluginFile)); err == nil {
		return nil, hint.Errorf("take the folder around it: "+hint.Path(filepath.Dir(dir)),
			"%s is a plugin, not a folder of plugins", dir)
	}
	names, err := os.ReadDir(dir)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	var entries []Entry
	for _, n := range names {
		path := filepath.Join(dir, n.Name())
		if info, err := os.Stat(path); err != nil {
			entries = append(entries, Entry{Dir: path, State: Broken, Reason: cause(err), Hint: brokenHint})
		} else if info.IsDir() {
			entries = append(entries, inspect(path))
		}
	}
	refuseTwins(entries)
	return entries, nil
}

// Open reads the folder of one plugin.
func Open(dir string) (Entry, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Entry{}, err
	}
	return inspect(dir), nil
}

// brokenHint is for folders whose reason says what is wrong.
const brokenHint = "correct the plugin, or install it again: docs/plugin-protocol.md, Folder"

// inspect examines one folder, and has a hint where it cannot be used.
func inspect(dir string) Entry {
	e := examine(dir)
	if e.Hint == "" && (e.State == Broken || e.State == Modified) {
		e.Hint = brokenHint
	}
	return e
}

// examine examines one folder.
func examine(dir string) Entry {
	e := Entry{Dir: dir}
	if strings.HasPrefix(filepath.Base(dir), ".") {
		e.State, e.Reason = Skipped, "its name begins with a dot"
		return e
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		e.Dir = real
	}
	// A Root follows links inside the folder and refuses links that leave it.
	root, err := os.OpenRoot(e.Dir)
	if err != nil {
		e.State, e.Reason = Broken, cause(err)
		return e
	}
	defer root.Close()

	data, err := readFile(root, manifest.PluginFile)
	if errors.Is(err, fs.ErrNotExist) {
		e.State, e.Reason = Skipped, "it has no "+manifest.PluginFile
		return e
	}
	if err != nil {
		e.State, e.Reason = Broken, err.Error()
		return e
	}
	if e.Manifest, err = manifest.ParsePlugin(manifest.PluginFile, data); err != nil {
		e.State, e.Reason, e.Hint = Broken, err.Error(), hint.Of(err)
		return e
	}
	if err := fitsHost(e.Manifest); err != nil {
		e.State, e.Reason, e.Hint = Broken, err.Error(), hint.Of(err)
		return e
	}
	command, files, err := findCommand(root, e.Dir, e.Manifest)
	if err != nil {
		e.State, e.Reason, e.Hint = Broken, err.Error(), hint.Of(err)
		if errors.Is(err, errMissing) {
			e.State = NotBuilt
		}
		return e
	}
	gpu := e.Manifest.GPUCommand()
	if _, err := root.Stat(gpu); gpu == "" || errors.Is(err, fs.ErrNotExist) { // not built: see missingGPUProgram
		gpu = ""
	} else if err := checkExecutable(root, gpu); err != nil {
		e.State, e.Reason, e.Hint = Broken, err.Error(), hint.Of(err)
		return e
	} else {
		files = append(files, gpu)
	}
	e.checkSums(root, command, files, gpu)
	if e.Startable() {
		if err := checkPrograms(root, command[0], gpu); err != nil {
			e.State, e.Reason, e.Hint = Broken, err.Error(),
				cmp.Or(hint.Of(err), "build it for this machine, or install it again")
		}
	}
	if e.Startable() {
		e.Command = command
		if gpu != "" {
			e.gpuCommand = filepath.Join(e.Dir, gpu)
		}
	}
	return e
}

// fitsHost returns why this host cannot have a plugin, whatever is in its folder.
func fitsHost(m *manifest.Plugin) error {
	if v := m.Protocol; v < stage.FirstProtocol || v > stage.LastProtocol {
		return hint.Errorf("install a build of the plugin for this host's protocol (docs/plugin-protocol.md)",
			"it needs protocol %d, but this host has %s", v, stage.Protocols)
	}
	return release.AtLeast(m.MinHost)
}

// checkSums compares the folder with its sums. gpu is the program for the data GPU, empty for none.
func (e *Entry) checkSums(root *os.Root, command, files []string, gpu string) {
	e.files = files
	sums, err := readFile(root, manifest.SumFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.State, e.Reason = Unverified, "it has no "+manifest.SumFile
	case err != nil:
		e.State, e.Reason = Modified, err.Error()
	default:
		listed, err := verify(root, sums, files)
		if rel, err := filepath.Rel(root.Name(), command[0]); err == nil { // an interpreter from PATH has no sum
			e.Sum = listed[rel]
		}
		e.sources = listed[manifest.SourcesFile]
		e.gpuSum = listed[gpu]
		e.sums, e.files = listed, slices.Sorted(maps.Keys(listed))
		if e.State = Verified; err != nil {
			e.State, e.Reason = Modified, err.Error()
			e.Hint = sumsHint(root)
		}
	}
}

// findCommand returns the command that starts the plugin, and the names of the files in the folder that determine what
// it does.
func findCommand(root *os.Root, dir string, m *manifest.Plugin) (command, files []string, err error) {
	argv, err := m.Command()
	if err != nil {
		return nil, nil, err
	}
	files = []string{manifest.PluginFile}
	if len(m.Argv) == 0 {
		if err := checkExecutable(root, argv[0]); err != nil {
			return nil, nil, err
		}
		return []string{filepath.Join(dir, argv[0])}, append(files, argv[0]), nil
	}
	command = append([]string(nil), argv...)
	if strings.Contains(argv[0], "/") {
		if !filepath.IsLocal(argv[0]) {
			return nil, nil, fmt.Errorf("argv[0] %q leaves the folder", argv[0])
		}
		if err := checkExecutable(root, argv[0]); err != nil {
			return nil, nil, err
		}
		command[0] = filepath.Join(dir, argv[0])
		files = append(files, filepath.Clean(argv[0]))
	} else {
		path, err := exec.LookPath(argv[0])
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return nil, nil, hint.Errorf("install it, or set PATH: docs/plugin-protocol.md, plugin.json",
				"argv[0]: %q is not in PATH", argv[0])
		}
		command[0] = path
	}
	for _, arg := range argv[1:] {
		if !filepath.IsLocal(arg) {
			continue
		}
		if _, err := root.Lstat(arg); err != nil {
			continue // not a file in the folder: an option, or the name of a module
		}
		info, err := root.Stat(arg)
		if err != nil {
			return nil, nil, fmt.Errorf("argv: %s: %s", arg, linkReason(root, arg, err))
		}
		if info.Mode().IsRegular() {
			files = append(files, filepath.Clean(arg))
		}
	}
	return command, files, nil
}

// errMissing is the reason of a program that is not there.
var errMissing = errors.New("is missing")

// howToBuild names the command for a folder. A checkout's own plugins are built together; a release has no Makefile.
func howToBuild(root *os.Root) string {
	if _, err := root.Stat("Makefile"); err == nil {
		return "make -C " + hint.Path(root.Name())
	}
	if _, err := os.Stat(filepath.Join(root.Name(), "../../scripts/build.sh")); err == nil {
		return "make build builds the plugins that come with xtts-host"
	}
	return "build it, or install it again"
}

func checkExecutable(root *os.Root, name string) error {
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hint.Errorf(howToBuild(root), "executable %s %w", name, errMissing)
	case err != nil:
		return fmt.Errorf("executable %s: %s", name, linkReason(root, name, err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("executable %s is not a regular file", name)
	case info.Mode()&0o111 == 0:
		return hint.Errorf("chmod +x "+filepath.Join(root.Name(), name), "executable %s lacks the executable bit", name)
	}
	return nil
}

// refuseTwins marks folders with the same plugin id as broken: it is unknown which of them a pipeline means.
func refuseTwins(entries []Entry) {
	byID := map[string][]int{}
	for i, e := range entries {
		if e.Manifest != nil {
			byID[e.Manifest.ID] = append(byID[e.Manifest.ID], i)
		}
	}
	for id, at := range byID {
		if len(at) < 2 {
			continue
		}
		for k, i := range at {
			other := at[0]
			if k == 0 {
				other = at[1]
			}
			e := &entries[i]
			e.State, e.Command, e.Sum, e.sources, e.gpuCommand, e.gpuSum = Broken, nil, "", "", "", ""
			e.Reason = fmt.Sprintf("plugin id %q is also that of %s", id, entries[other].Dir)
			e.Hint = "remove one of the two folders, or give one plugin another id"
		}
	}
}

// readFile reads a small file of the folder.
func readFile(root *os.Root, name string) ([]byte, error) {
	data, err := files.ReadIn(root, name, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := root.Lstat(name); lerr == nil {
			return nil, fmt.Errorf("%s is a link to nothing", name)
		}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, linkReason(root, name, err))
	}
	return data, nil
}

// linkReason replaces the error of a Root for a link that leaves the folder.
func linkReason(root *os.Root, name string, err error) string {
	inside := errors.Is(err, files.ErrNotRegular) || errors.Is(err, files.ErrTooLarge) || errors.Is(err, syscall.ELOOP)
	if info, lerr := root.Lstat(name); !inside && lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "a link that leaves the folder"
	}
	return cause(err)
}

// cause drops the operation and the path, which the message already contains.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
