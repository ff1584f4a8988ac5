package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// DataFolder declares a folder of files that a stage reads, such as recordings of noise. Its path is in the pipeline.
type DataFolder struct {
	Description string `json:"description,omitempty"`
	// Kind is AudioData or FileData.
	Kind string `json:"kind"`
	// Optional folders may be missing from the pipeline.
	Optional bool `json:"optional,omitempty"`
}

// The kinds of data folders: recordings in the formats that the host reads, or any files.
const (
	AudioData = "audio"
	FileData  = "files"
)

// dataProtocol is the first version of the protocol that has data folders.
const dataProtocol = 2

// checkData checks the data folders of a stage.
func (p *Plugin) checkData(s *Stage) error {
	switch {
	case len(s.Data) == 0:
		return nil
	case p.Protocol < dataProtocol:
		return hint.Errorf(fmt.Sprintf(`write "protocol": %d, and build the plugin with an SDK that has it`,
			dataProtocol), "stage %q: data needs protocol %d", s.Name, dataProtocol)
	case s.Cacheable:
		return fmt.Errorf("stage %q: a cacheable stage cannot have data: the cache knows nothing of its files", s.Name)
	}
	return nil
}

// DataNames lists the data folders of a stage in the order of their names.
func (s *Stage) DataNames() []string { return slices.Sorted(maps.Keys(s.Data)) }

// MapData returns a copy of a pipeline in which each stage instance, those of groups among them, has the data folders
// that data returns for it.
func MapData(pipeline []StageInstance, data func(StageInstance) map[string]string) []StageInstance {
	out := slices.Clone(pipeline)
	for k := range out {
		i := &out[k]
		if !i.IsGroup() {
			i.Data = data(*i)
			continue
		}
		i.OneOf, i.SomeOf = MapData(i.OneOf, data), MapData(i.SomeOf, data)
	}
	return out
}

// withFolders is an entry of a pipeline as far as it names data folders.
type withFolders struct {
	Name   string         `json:"name"`
	Data   map[string]any `json:"data"`
	OneOf  []withFolders  `json:"one_of"`
	SomeOf []withFolders  `json:"some_of"`
}

// refuseFolders refuses a bundle that names data folders. It may come from someone else, who must not choose what of
// this machine a stage reads.
func refuseFolders(bundle []byte) error {
	var b struct {
		Pipeline []withFolders `json:"pipeline"`
	}
	if json.Unmarshal(bundle, &b) != nil {
		return nil // the schema says what is wrong
	}
	for _, entry := range b.Pipeline {
		for _, i := range slices.Concat([]withFolders{entry}, entry.OneOf, entry.SomeOf) {
			for _, name := range slices.Sorted(maps.Keys(i.Data)) {
				return hint.Errorf(
					fmt.Sprintf("leave data out of it, and name the folder with --plugin-data %s.%s=DIR", i.Name, name),
					"pipeline: instance %q: a bundle may not name a data folder (%s): it is on the machine of a run",
					i.Name, name)
			}
		}
	}
	return nil
}
