package archive

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

const (
	indexFile  = "index.json" // the first file of an archive
	filesBelow = "plugin/"    // the folder of the plugin's files in an archive
	format     = 1            // of Index

	// AnyPlatform stands for the platforms of a script.
	AnyPlatform = "any"

	requirementsFile = "requirements.txt"  // what a plugin in Python needs
	lockFile         = "requirements.lock" // the same with all versions and hashes
)

// The limits of an archive.
const (
	MaxBytes    = 2 << 30 // of the archive
	maxUnpacked = 4 << 30 // of all files together
	maxFile     = 2 << 30 // of one file: a run reads all files that plugin.sum lists
	maxFiles    = 10000
	maxIndex    = 4 << 20
	maxName     = 512 // bytes
	// An archive may unpack to maxFree bytes, or to maxRatio times its own size. Programs shrink to a third.
	maxFree  = 64 << 20
	maxRatio = 100
)

// Index is index.json of an archive. All but Files repeats plugin.json, so that a reader of the index needs no more.
type Index struct {
	Format   int    `json:"format"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	License  string `json:"license,omitempty"`
	Homepage string `json:"homepage,omitempty"`
	MinHost  string `json:"min_host,omitempty"`
	// Platforms are those that the plugin has programs for, as in plugin.json, or AnyPlatform for a script.
	Platforms []string `json:"platforms"`
	// Environment is the file from which the environment of a plugin in Python is made: each package with version and
	// hash. Empty for a plugin that needs none.
	Environment string `json:"environment,omitempty"`
	Asks        Asks   `json:"asks"`
	Files       []File `json:"files"` // sorted by name
}

// Asks is what a plugin needs besides its own folder.
type Asks struct {
	GPU         string   `json:"gpu"` // none, optional or required
	GPUMemoryMB int      `json:"gpu_memory_mb,omitempty"`
	MemoryMB    int      `json:"memory_mb,omitempty"`
	Network     bool     `json:"network"`
	Folders     []string `json:"folders"`        // that it reads
	Data        []string `json:"data,omitempty"` // stage.folder: the data folders, which a run names
}

// File is a file of the plugin.
type File struct {
	Name       string `json:"name"` // below the plugin's folder, with slashes
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256"` // hex
	Executable bool   `json:"executable,omitempty"`
}

// newIndex returns the index of a plugin with these files.
func newIndex(p *manifest.Plugin, list []File) Index {
	ix := Index{
		Format: format, Name: p.ID, Version: p.Version, License: p.License, Homepage: p.Homepage, MinHost: p.MinHost,
		Platforms: slices.Sorted(maps.Keys(p.Executable)), Files: list,
		Asks: Asks{
			GPU: "none", GPUMemoryMB: p.GPUMemoryMB, MemoryMB: p.MemoryMB, Network: p.Network,
			Folders: append([]string{}, p.Folders...),
		},
	}
	if len(p.Argv) > 0 {
		ix.Platforms = []string{AnyPlatform}
	}
	if _, ok := ix.File(requirementsFile); ok {
		ix.Environment = lockFile
	}
	for _, s := range p.Stages {
		if s.GPU == manifest.GPURequired || s.GPU == manifest.GPUOptional && ix.Asks.GPU == "none" {
			ix.Asks.GPU = s.GPU
		}
		for _, name := range s.DataNames() {
			ix.Asks.Data = append(ix.Asks.Data, s.Name+"."+name)
		}
	}
	return ix
}

// File returns the file of a name.
func (ix *Index) File(name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(ix.Files, name, func(f File, name string) int { return cmp.Compare(f.Name, name) })
	if !ok {
		return File{}, false
	}
	return ix.Files[i], true
}

// Bytes is the size of all files.
func (ix *Index) Bytes() (sum int64) {
	for _, f := range ix.Files {
		sum += f.Size
	}
	return sum
}

// check checks what the index says of itself. size is that of the archive.
func (ix *Index) check(size int64) error {
	if ix.Format != format {
		return hint.Errorf("install a version of xtts-host that reads it", "%s: format %d, and this host reads %d",
			indexFile, ix.Format, format)
	}
	if len(ix.Files) > maxFiles {
		return refuse("%d files, more than the %d that an archive may have", len(ix.Files), maxFiles)
	}
	folded := map[string]string{} // each file and folder, by its name in lower case
	for i, f := range ix.Files {
		if err := checkName(f.Name); err != nil {
			return err
		}
		if i > 0 && f.Name <= ix.Files[i-1].Name {
			return refuse("%s: %q is listed twice, or out of order", indexFile, f.Name)
		}
		if f.Size < 0 || f.Size > maxFile {
			return refuse("%s: %q has %s, more than the %s that a file may have", indexFile, f.Name,
				units.Size(f.Size), units.Size(maxFile))
		}
		for at := f.Name; at != "."; at = path.Dir(at) {
			kind := at + "/"
			if at == f.Name {
				kind = at
			}
			before, ok := folded[strings.ToLower(at)]
			if ok && (before != kind || at == f.Name) {
				return refuse("%q and %q are the same name on some systems", before, kind)
			}
			folded[strings.ToLower(at)] = kind
		}
	}
	if sum := ix.Bytes(); sum > maxUnpacked || sum > unpackedLimit(size) {
		return refuse("it unpacks to %s, more than the %s that an archive of %s may have", units.Size(sum),
			units.Size(min(maxUnpacked, unpackedLimit(size))), units.Size(size))
	}
	return nil
}

// unpackedLimit is the most bytes that an archive of a size may unpack to.
func unpackedLimit(size int64) int64 { return max(maxFree, min(size, MaxBytes)*maxRatio) }

// matches checks that the index says what plugin.json says.
func (ix *Index) matches(p *manifest.Plugin) error {
	want, have := reflect.ValueOf(newIndex(p, ix.Files)), reflect.ValueOf(*ix)
	if want.FieldByName("Name").String() != ix.Name {
		return refuse("%s is of plugin %q, and %s of %q", indexFile, ix.Name, manifest.PluginFile, p.ID)
	}
	for i := range want.NumField() {
		if !reflect.DeepEqual(want.Field(i).Interface(), have.Field(i).Interface()) {
			key, _, _ := strings.Cut(want.Type().Field(i).Tag.Get("json"), ",")
			return refuse("%s: %s is not what %s says", indexFile, key, manifest.PluginFile)
		}
	}
	return nil
}

// runsOn returns why the plugin has no program for a platform, such as linux_amd64.
func (ix *Index) runsOn(platform string) error {
	if slices.Contains(ix.Platforms, platform) || slices.Contains(ix.Platforms, AnyPlatform) {
		return nil
	}
	return hint.Errorf("ask its author for a build for "+platform, "it has programs for %s, and this machine is %s",
		strings.Join(ix.Platforms, ", "), platform)
}

// refuse is the error for an archive that plugins pack does not make.
func refuse(message string, args ...any) error {
	return hint.Errorf("get it again from its author; if it stays so, do not use it", message, args...)
}

// ErrCut is the error for an archive that ends too soon.
var ErrCut = errors.New("it is cut short")

// checkName refuses a name that leads out of the folder, or that is not one plain file on every system.
func checkName(name string) error {
	bad := func(why string) error { return refuse("the name %q %s", name, why) }
	switch {
	case name == "":
		return bad("is empty")
	case len(name) > maxName:
		return refuse("a name of %d bytes, more than %d", len(name), maxName)
	case strings.HasPrefix(name, "/"):
		return bad("is an absolute path")
	case strings.Contains(name, "\\"):
		return bad("has a backslash")
	case fmt.Sprintf("%q", name) != `"`+strings.ReplaceAll(name, `"`, `\"`)+`"`:
		return bad("has characters that cannot be seen")
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return bad("leads out of the folder")
		case part == "" || part == ".":
			return bad("has an empty part")
		case strings.HasPrefix(part, ".") || Made(part):
			return bad("has a part that is not a plugin's own: it begins with a dot, or Python or npm makes it")
		}
	}
	return nil
}

// Made reports whether a folder of that name is made on each machine, and is no part of a plugin: an environment of
// Python, for example.
func Made(folder string) bool {
	return strings.HasPrefix(folder, ".") || folder == "__pycache__" || folder == "node_modules"
}
