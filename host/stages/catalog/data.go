package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// DataFolder is a folder that a stage may read, with the files in it that can be used, in the order of their names.
type DataFolder struct {
	Path  string // absolute, but after Resolve as it is given
	Files []DataFile
	Hash  string // of the names and contents of the files
}

// DataFile is a file of a data folder.
type DataFile struct {
	Name    string // relative to the folder, with /
	Size    int64  // bytes
	Seconds float64
	SHA256  [32]byte // of the content
}

// DataName is the name of an instance's data folder in all messages, and for --plugin-data.
func DataName(instance, name string) string { return instance + "." + name }

// PlaceData returns a copy of the pipeline with other paths of data folders: given maps NAME, of all instances whose
// stage has a folder of that name, or INSTANCE.NAME, which comes first, to a path. A name that no instance has is
// refused.
func PlaceData(
	pipeline []manifest.StageInstance, given map[string]string, entries []Entry,
) ([]manifest.StageInstance, error) {
	if len(given) == 0 {
		return pipeline, nil
	}
	r := &resolver{entries: entries}
	unused, known := maps.Clone(given), []string(nil)
	out := manifest.MapData(pipeline, func(i manifest.StageInstance) map[string]string {
		_, stage, err := r.find(i.Stage)
		if err != nil {
			return i.Data // Resolve says so
		}
		data := maps.Clone(i.Data)
		for _, name := range stage.DataNames() {
			full := DataName(i.Name, name)
			known = append(known, full)
			path, ok := given[full]
			if of, all := given[name]; !ok && all {
				path, ok = of, true
			}
			delete(unused, full)
			delete(unused, name)
			if ok {
				if data == nil {
					data = map[string]string{}
				}
				data[name] = path
			}
		}
		return data
	})
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		return nil, hint.Errorf(nameHint(name, known),
			"--plugin-data %s: no stage of the pipeline has such a data folder", name)
	}
	return out, nil
}

// nameHint says which data folders there are.
func nameHint(name string, known []string) string {
	if len(known) == 0 {
		return "leave the flag out, or add the stage that reads the folder with --augment"
	}
	for _, full := range known {
		known = append(known, full[strings.LastIndexByte(full, '.')+1:]) // without the name of the instance
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return cmp.Or(hint.DidYouMean(name, known), "the pipeline has "+strings.Join(known, ", "))
}

// dataOf returns the data folders of an instance, without their files.
func dataOf(i *manifest.StageInstance, stage *manifest.Stage) (map[string]DataFolder, error) {
	var folders map[string]DataFolder
	for _, name := range slices.Sorted(maps.Keys(i.Data)) {
		if _, ok := stage.Data[name]; !ok {
			err := fmt.Errorf("data: stage %q has no data folder %q", stage.Name, name)
			if len(stage.Data) == 0 {
				return nil, hint.Errorf("leave data out: plugin.json of its plugin declares none", "%w", err)
			}
			return nil, hint.Errorf("it has "+strings.Join(stage.DataNames(), ", "), "%w", err)
		}
		if i.Data[name] == "" {
			return nil, errors.New("data: " + name + " is an empty path")
		}
		if folders == nil {
			folders = map[string]DataFolder{}
		}
		folders[name] = DataFolder{Path: i.Data[name]}
	}
	for _, name := range stage.DataNames() {
		d := stage.Data[name]
		if _, ok := folders[name]; ok || d.Optional {
			continue
		}
		what := "a folder"
		if d.Description != "" {
			what += " of " + d.Description
		}
		return nil, hint.Errorf("name it with --plugin-data "+DataName(i.Name, name)+"=DIR",
			"stage %q needs %s: data folder %q", stage.Name, what, name)
	}
	return folders, nil
}
