package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// files returns the files of the bundle that a configuration names, with their SHA-256. A stage can run the inference
// graphs of its kind, at the rate of the pipeline's waveforms.
func (r *resolver) files(stage manifest.Stage, config map[string]any) (map[string]string, error) {
	var files map[string]string
	for _, key := range stage.Files {
		value, given := config[key]
		if !given {
			continue
		}
		name, _ := value.(string)
		sum, ok := r.types.Files[name]
		if !ok {
			return nil, hint.Errorf("the bundle has "+strings.Join(slices.Sorted(maps.Keys(r.types.Files)), ", "),
				"config: %s is %v, which is not a file of the bundle", key, value)
		}
		for _, g := range r.types.Inference {
			switch {
			case g.File != name:
			case g.Kind != manifest.InferenceStage:
				return nil, fmt.Errorf("config: %s is %s, which is for speaking: its kind is %s", key, name, g.Kind)
			case g.SampleRate != r.types.Features.SampleRate:
				return nil, fmt.Errorf(
					"config: %s is %s, which takes waveforms of %d Hz, but those of the pipeline have %d Hz",
					key, name, g.SampleRate, r.types.Features.SampleRate)
			}
		}
		if files == nil {
			files = map[string]string{}
		}
		files[name] = sum
	}
	return files, nil
}
