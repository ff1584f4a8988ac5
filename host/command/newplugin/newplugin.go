package newplugin

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared"
	"github.com/xtts-host/xtts-host/shared/hint"
)

//go:embed all:template
var templates embed.FS

const (
	placeholder = "my-plugin" // in the templates, for the name of the plugin and of its stage
	sdk         = "sdk"       // the folder of the SDK in a plugin
)

// names are those that plugin.json may have, and Go in the path of a module: it refuses a dot at the end, and devices
// of Windows.
var (
	names   = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9_-])?$`)
	devices = regexp.MustCompile(`^(con|aux|nul|prn|com[0-9]|lpt[0-9])([.]|$)`)
)

// renamed are the files of the templates that would have a meaning in this repository under their own names.
var renamed = map[string]string{
	"gitignore": ".gitignore", "go.mod.txt": "go.mod", "workflow.yml": ".github/workflows/test.yml",
}

// Options are the arguments of `xtts-host plugins new`.
type Options struct {
	Folder   string // new; its last part is the name of the plugin
	Language string
}

// sources are the SDKs by the languages that there are templates in.
var sources = map[string]fs.FS{"go": shared.Source, "python": shared.Python}

// Languages are those of the templates.
func Languages() []string { return slices.Sorted(maps.Keys(sources)) }

// Command writes the folder of a new plugin, and says on out how to go on. A folder that it cannot write to the end is
// removed.
func Command(out io.Writer, o Options) error {
	folder := filepath.Clean(o.Folder)
	name := filepath.Base(folder)
	beside := neighbours(filepath.Dir(folder))
	if err := check(folder, name, beside); err != nil {
		return exit.Refused(err)
	}
	list, err := content(name, o.Language)
	if err != nil {
		return exit.Refused(err)
	}
	if err := write(folder, list); err != nil {
		return hint.Errorf("name a folder on a disk with room, in one that you may write to", "%s: %w", folder, err)
	}
	at, folders := hint.Path(folder), hint.Path(filepath.Dir(folder))
	try := fmt.Sprintf("plugins try %s --plugins %s --clip me.wav --out heard.wav", name, folders)
	_, err = fmt.Fprintf(out, `created  %s: a plugin with the stage %s, and the SDK
next     make -C %s
         %s
         %s
`, at, name, at, hint.Command("plugins test "+at), hint.Command(try))
	if err == nil && !slices.ContainsFunc(beside, func(e catalog.Entry) bool { return e.Name() == "features" }) {
		_, err = fmt.Fprintln(out, `training also needs the plugin "features" of xtts-host: link it into`, folders)
	}
	return err
}

// neighbours are the plugins in a folder, which may not be there yet.
func neighbours(folder string) []catalog.Entry {
	entries, err := catalog.Scan(folder)
	if err != nil {
		return nil // what is wrong with it is said where the new folder is made
	}
	return entries
}

// check refuses a name that no plugin can have, a folder that is there, and the name of another plugin or its stage:
// the new stage has the same name, and pipelines that name the other one would be ambiguous.
func check(folder, name string, beside []catalog.Entry) error {
	if !names.MatchString(name) || devices.MatchString(name) {
		return hint.Errorf("for example: "+hint.Command("plugins new my-plugins/room-echo"), "%s: %q cannot be the "+
			"name of a plugin: it has at most 64 of a to z, 0 to 9, '.', '_' and '-', no '.' at the end, and is no "+
			"device of Windows", folder, name)
	}
	if err := disk.CheckNew(folder); err != nil {
		return hint.Errorf("name a new folder, in one that you may write to", "%s: %w", folder, err)
	}
	if by := catalog.Taken(name, beside); by != "" {
		other := filepath.Join(filepath.Dir(folder), "my-"+name)
		return hint.Errorf("choose another name, for example: "+hint.Command("plugins new "+hint.Path(other)),
			"%s: %q is the name of a plugin or a stage already, of plugin %s", folder, name, by)
	}
	return nil
}

// content has the files of a plugin by their names.
func content(name, language string) (map[string][]byte, error) {
	list := map[string][]byte{}
	source, ok := sources[language]
	if !ok {
		return nil, hint.Errorf("for example: --lang go", "--lang %s: there are templates in %s",
			visible.Text(language), strings.Join(Languages(), " and "))
	}
	own, err := fs.Sub(templates, path.Join("template", language))
	if err != nil {
		return nil, err
	}
	if err := add(list, own, func(at string, text []byte) (string, []byte) {
		if as, ok := renamed[at]; ok {
			at = as
		}
		return at, []byte(strings.ReplaceAll(string(text), placeholder, name))
	}); err != nil {
		return nil, err
	}
	err = add(list, source, func(at string, text []byte) (string, []byte) {
		if strings.HasSuffix(at, "_test.go") || strings.Contains(at, "/testdata/") {
			return "", nil
		}
		return path.Join(sdk, strings.TrimPrefix(at, "python/")), text
	})
	if err != nil {
		return nil, err
	}
	list["LICENSE"] = list[path.Join(sdk, "LICENSE")]
	if language == "go" {
		err = complete(list)
	}
	return list, err
}

// add adds the files of a file system under the names and with the content that as gives them; none without a name.
func add(list map[string][]byte, from fs.FS, as func(string, []byte) (string, []byte)) error {
	return fs.WalkDir(from, ".", func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, at)
		if at, text = as(at, text); at != "" {
			list[at] = text
		}
		return err
	})
}

// complete gives the Go module what it requires: what the SDK does.
func complete(list map[string][]byte) error {
	module := string(list[path.Join(sdk, "go.mod")])
	at := strings.Index(module, "\nrequire (")
	if at < 0 {
		return errors.New("the module of the SDK requires nothing")
	}
	list["go.mod"] = append(list["go.mod"], indirect(module[at:])...)
	list["go.sum"] = list[path.Join(sdk, "go.sum")]
	return nil
}

// indirect marks what a go.mod requires as indirect.
func indirect(module string) string {
	lines := strings.Split(module, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "\t") && !strings.HasSuffix(line, "// indirect") {
			lines[i] = line + " // indirect"
		}
	}
	return strings.Join(lines, "\n")
}

// write writes the files into a new folder, which appears when all are there.
func write(folder string, list map[string][]byte) (err error) {
	parent := files.In(filepath.Dir(folder))
	if err := parent.MkdirAll(); err != nil {
		return err
	}
	draft := filepath.Join(filepath.Dir(folder), fmt.Sprintf(".%s.%d", filepath.Base(folder), os.Getpid()))
	if err := files.At(draft).Mkdir(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, files.At(draft).RemoveAll())
		}
	}()
	for name, text := range list {
		file := filepath.Join(draft, filepath.FromSlash(name))
		if err := files.In(filepath.Dir(file)).MkdirAll(); err != nil {
			return err
		}
		if err := files.At(file).Write(text); err != nil {
			return err
		}
	}
	return files.At(draft).Rename(files.At(folder))
}
