package resume

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// RefusedError refuses to resume with other settings than those that the run was started with.
type RefusedError struct {
	// Path is the checkpoint's folder.
	Path    string
	Refused []Difference
	// Allowed is what --allow named.
	Allowed []string
	// MissingConfig is the config.yaml of the run if that is missing: then the settings are those of the command.
	MissingConfig string
	// Lost are the lines of the training list that the run could use and that cannot be used now, each with the reason.
	Lost []string
	// BatchSize says which --batch-size keeps the rows of a step, if ranks have another one now; else it is "".
	BatchSize string
	// Folders are what has changed in data folders, by their names, as far as it is known.
	Folders map[string]Folder
	// Plugins are the files of plugins that are not as they were, by the name of the difference, as far as it is known.
	Plugins map[string][]string
}

// Folder is a data folder with other files than the run has begun with.
type Folder struct {
	Path  string
	Files []string // what has become of each file that is not as it was
}

// folder returns what is known of a difference that is a data folder.
func (e *RefusedError) folder(d Difference) (name string, f Folder, known bool) {
	name, is := strings.CutPrefix(d.Name, pluginData+"/")
	f, known = e.Folders[name]
	return name, f, is && known
}

// missingConfig is the config.yaml of a run if that is missing, else "".
func missingConfig(folder string) string {
	path := filepath.Join(folder, rundir.SettingsFile)
	if _, err := files.At(path).Lstat(); errors.Is(err, fs.ErrNotExist) {
		return path
	}
	return ""
}

// maxListed is how many differences an error lists.
const maxListed = 20

func (e *RefusedError) Error() string { return strings.Join(e.Lines(), "\n") }

// Lines returns the lines of the message (package visible).
func (e *RefusedError) Lines() []string {
	lines := []string{e.Path + ": the run was started with other settings:"}
	for _, d := range e.Refused[:min(maxListed, len(e.Refused))] {
		_, folder, isFolder := e.folder(d)
		switch {
		case isFolder:
			lines = append(lines, fmt.Sprintf("  %s: other files than before in %s:", d.Name, folder.Path))
			lines = append(lines, firstOf(folder.Files)...)
		case d.Name == "data" && len(e.Lost) > 0:
			lines = append(lines, e.lost()...)
		case d.Name == "data":
			lines = append(lines, "  "+d.String()+" (hashes of the clips and texts, which have changed)")
		case d.Name != "data/recordings" || len(e.Lost) == 0: // another hash says nothing beside the names
			lines = append(lines, "  "+d.String())
			lines = append(lines, firstOf(e.Plugins[d.Name])...)
		}
	}
	if n := len(e.Refused) - maxListed; n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", n))
	}
	if e.MissingConfig != "" {
		lines = append(lines, "  ("+e.MissingConfig+", which has the settings of the run, is missing)")
	}
	return lines
}

// lost names the lines that are lost.
func (e *RefusedError) lost() []string {
	return append(
		[]string{fmt.Sprintf("  data: %s of the list cannot be used any more:", units.Count(len(e.Lost), "line"))},
		firstOf(e.Lost)...)
}

// firstOf indents lines, and counts those that are too many.
func firstOf(all []string) (lines []string) {
	for _, line := range all[:min(maxListed, len(all))] {
		lines = append(lines, "    "+line)
	}
	if n := len(all) - maxListed; n > 0 {
		lines = append(lines, fmt.Sprintf("    and %d more", n))
	}
	return lines
}

// Hint names the list for --allow that accepts the differences, or says what can never change and why.
func (e *RefusedError) Hint() string {
	var never []string
	allow := slices.Clone(e.Allowed)
	for _, d := range e.Refused {
		name := d.setting()
		why := settings[name].never
		if _, known := settings[name]; !known {
			why = "this program does not know what a change of it means"
		}
		if text := name + " can never change: " + why; why != "" && !slices.Contains(never, text) {
			never = append(never, text)
		}
		if why == "" && !slices.Contains(allow, name) {
			allow = append(allow, name)
		}
	}
	if never != nil {
		return strings.Join(never, "; ") + "; a new run can start from these weights with --init " + hint.Path(e.Path)
	}
	back := cmp.Or(e.BatchSize, "leave them as they were")
	if len(e.Lost) > 0 {
		back = "put the recordings back"
	}
	if moved := e.moved(); moved != "" {
		back = e.restore() + ", name the folder where they are with " + moved + ", begin a new run with --init " +
			hint.Path(e.Path)
	}
	return back + ", or accept the change with --allow " + strings.Join(allow, ",") + " (docs/resume.md)"
}

// restore says how the data folders become what they were.
func (e *RefusedError) restore() string {
	for _, d := range e.Refused {
		_, folder, known := e.folder(d)
		isAdded := func(line string) bool { return strings.HasPrefix(line, "added: ") }
		if strings.HasPrefix(d.Name, pluginData+"/") &&
			(!known || !slices.ContainsFunc(folder.Files, isAdded) || slices.ContainsFunc(folder.Files,
				func(line string) bool { return !isAdded(line) })) {
			return "put the files back"
		}
	}
	return "take the added files out"
}

// moved is the flags that name the data folders elsewhere, or "" if none has changed.
func (e *RefusedError) moved() string {
	var flags []string
	for _, d := range e.Refused {
		if name, is := strings.CutPrefix(d.Name, pluginData+"/"); is {
			flags = append(flags, "--plugin-data "+shown(name)+"=DIR")
		}
	}
	return strings.Join(flags, " ")
}
