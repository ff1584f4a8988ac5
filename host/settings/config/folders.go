package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// pluginData is the flag that names data folders of stages.
const pluginData = "plugin-data"

// folders is the data folders by NAME or INSTANCE.NAME.
type folders map[string]string

// nextFolder finds where the next NAME=DIR begins: a path may have commas.
var nextFolder = regexp.MustCompile(`,([A-Za-z0-9_][A-Za-z0-9._-]*=)`)

// Set adds one or more NAME=DIR, separated by commas. The empty text adds none.
func (f *folders) Set(text string) error {
	for text != "" {
		one := text
		if at := nextFolder.FindStringIndex(text); at != nil {
			one, text = text[:at[0]], text[at[0]+1:]
		} else {
			text = ""
		}
		name, path, _ := strings.Cut(one, "=")
		if name == "" || path == "" {
			return hint.Errorf("for example: --"+pluginData+" noise=recordings/noise", "%q is not NAME=DIR", one)
		}
		if *f == nil {
			*f = folders{}
		}
		(*f)[name] = path
	}
	return nil
}

func (f *folders) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*f)) {
		parts = append(parts, name+"="+(*f)[name])
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (f *folders) Type() string { return "NAME=DIR" }

// Paths returns the folders.
func (f *folders) Paths() []string { return slices.Sorted(maps.Values(*f)) }

// addFolders adds the data folders of a source to those of sources with a higher priority. NAME there takes the place
// of INSTANCE.NAME here.
func (s *Set) addFolders(value any, source string) error {
	var given folders
	switch v := value.(type) {
	case map[string]any:
		given = folders{}
		for name, path := range v {
			given[name] = fmt.Sprint(path)
		}
	default:
		if err := given.Set(fmt.Sprint(v)); err != nil {
			return err
		}
	}
	had := maps.Clone(s.PluginData)
	for name, path := range given {
		if name == "" || path == "" {
			return errors.New("a data folder has a name and a path")
		}
		_, same := had[name]
		_, all := had[name[strings.LastIndexByte(name, '.')+1:]]
		if same || all {
			continue
		}
		if s.PluginData == nil {
			s.PluginData = map[string]string{}
		}
		s.PluginData[name], s.folders[name] = path, source
		if s.origins[pluginData] == "" {
			s.origins[pluginData] = source
		}
	}
	return nil
}

// dataFolders lists the data folders that the settings name, by the flag and in the pipeline.
func dataFolders(s *Set) (all []consented) {
	for _, name := range slices.Sorted(maps.Keys(s.PluginData)) {
		path := s.PluginData[name]
		all = append(all, consented{
			setting: pluginData, path: path, named: name + "=" + path,
			fromRun: s.Resume != "" && s.folders[name] == runFile(s),
			leaveOut: func() error {
				delete(s.PluginData, name)
				return nil
			},
		})
	}
	for _, in := range manifest.Steps(s.Pipeline) {
		for _, name := range slices.Sorted(maps.Keys(in.Data)) {
			full := catalog.DataName(in.Name, name)
			_, own := s.PluginData[full]
			if _, every := s.PluginData[name]; own || every {
				continue // the flag names another folder
			}
			all = append(all, consented{
				setting: pluginData, path: in.Data[name], named: full + "=" + in.Data[name],
				fromRun: fromRunFile(s, pipelineKey),
				leaveOut: func() error {
					delete(in.Data, name)
					return nil
				},
			})
		}
	}
	return all
}

// absoluteFolders returns folders with absolute paths.
func absoluteFolders(given map[string]string) map[string]string {
	if given == nil {
		return nil
	}
	out := map[string]string{}
	for name, path := range given {
		out[name] = absolute(path)
	}
	return out
}
