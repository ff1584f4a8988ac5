package manifest

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// PluginFile and SumFile are the names of a plugin folder's manifest and checksums.
const (
	PluginFile = "plugin.json"
	SumFile    = "plugin.sum"

	// SourcesFile is the optional list of what the program is built from. If SumFile lists it, it stands for the
	// program in the identity of a run: two compilers make different programs of the same sources.
	SourcesFile = "plugin.sources"
)

// Plugin is the content of plugin.json. docs/plugin-protocol.md is its specification.
type Plugin struct {
	ID          string `json:"id"`
	Version     string `json:"version"`
	Protocol    int    `json:"protocol"`
	Description string `json:"description,omitempty"`
	License     string `json:"license,omitempty"`
	Homepage    string `json:"homepage,omitempty"` // an https address
	// MinHost is the lowest version of xtts-host that the plugin works with, such as "0.3.0"; empty for any.
	MinHost string `json:"min_host,omitempty"`
	// Executable maps "os_arch" to a file in the folder, and "os_arch_cuda" to another file for processes that are
	// given a GPU. Argv is a command instead. It runs in the folder.
	Executable map[string]string `json:"executable,omitempty"`
	Argv       []string          `json:"argv,omitempty"`
	// GPUMemoryMB is the minimum GPU memory that one process needs, in MB of 1 << 20 bytes, including its CUDA context.
	// 0 means unknown. Only a plugin with a stage that can use a GPU may set it.
	GPUMemoryMB int `json:"gpu_memory_mb,omitempty"`
	// MemoryMB is the most memory that one process uses on the CPU, in MB, without the ring; 0 means unknown.
	MemoryMB int `json:"memory_mb,omitempty"`
	// Network says that a process needs the network.
	Network bool `json:"network,omitempty"`
	// Folders are the absolute, clean paths of folders outside of the plugin's own that a process reads, besides those
	// that the pipeline names (Stage.Data). They need not exist.
	Folders []string `json:"folders,omitempty"`
	Stages  []Stage  `json:"stages"`
}

// Stage kinds. A preprocess stage computes tensors from other tensors and always runs. An augment stage edits tensors
// in place, and evaluation skips it.
const (
	Preprocess = "preprocess"
	Augment    = "augment"
)

// The values of Stage.GPU for a stage that can use a GPU.
const (
	GPUOptional = "optional"
	GPURequired = "required"
)

// Stage is one operation that a plugin offers for a batch.
type Stage struct {
	Name    string       `json:"name"`
	Kind    string       `json:"kind"`
	Inputs  []TensorSpec `json:"inputs"`
	Outputs []TensorSpec `json:"outputs"`
	// Config is the JSON Schema of an instance's configuration. If it is nil, the stage takes no configuration.
	Config map[string]any `json:"config,omitempty"`
	// MaxGrowth is the largest factor by which the stage lengthens a row; 0 means 1.
	MaxGrowth float64 `json:"max_growth,omitempty"`
	// GrowthKey is a key of the configuration, a number: the stage lengthens a row by at most 1/number, if that is less
	// than MaxGrowth.
	GrowthKey string `json:"growth_key,omitempty"`
	// GPU is "none" (also when empty), GPUOptional or GPURequired.
	GPU           string `json:"gpu,omitempty"`
	Deterministic bool   `json:"deterministic"`
	// Cacheable says that the outputs of a row depend on nothing but the row's inputs, the configuration, the files
	// of the bundle that Files names and the feature contract, so that the host may keep them: not on the row key,
	// the epoch or the bucket.
	Cacheable bool `json:"cacheable,omitempty"`
	// Files are the keys of the configuration that name a file of the bundle.
	Files []string `json:"files,omitempty"`
	// Data are the folders of files that the stage reads, by name.
	Data map[string]DataFolder `json:"data,omitempty"`
}

// UsesGPU reports whether the stage can use a GPU.
func (s *Stage) UsesGPU() bool { return s.GPU == GPUOptional || s.GPU == GPURequired }

// isStageKey reports whether a stage of plugin.json has a key.
func isStageKey(key string) bool {
	t := reflect.TypeFor[Stage]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" && name == key {
			return true
		}
	}
	return false
}

// ParsePlugin parses plugin.json. file is only used in messages.
func ParsePlugin(file string, data []byte) (*Plugin, error) {
	p := new(Plugin)
	if err := decode(file, pluginSchema(), data, p); err != nil {
		if bad, ok := errors.AsType[*invalidError](err); ok && len(bad.place) == 0 && isStageKey(bad.unknown) {
			return nil, hint.Errorf(bad.unknown+" is a key of a stage: put it into an entry of stages", "%w", err)
		}
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

func (p *Plugin) check() error {
	if (len(p.Executable) == 0) == (len(p.Argv) == 0) {
		return fmt.Errorf("exactly one of executable and argv is needed")
	}
	if p.GPUMemoryMB > 0 && !slices.ContainsFunc(p.Stages, func(s Stage) bool { return s.UsesGPU() }) {
		return fmt.Errorf("gpu_memory_mb is given, but no stage has gpu %s or %s", GPUOptional, GPURequired)
	}
	for _, folder := range p.Folders {
		if clean := path.Clean(folder); clean != folder || clean == "/" {
			return hint.Errorf("name each folder by its shortest absolute path, such as /data/noise",
				"folders: %q is not the shortest path of a folder below /", folder)
		}
	}
	stages := map[string]bool{}
	for _, s := range p.Stages {
		if stages[s.Name] {
			return fmt.Errorf("stages: two are named %q", s.Name)
		}
		stages[s.Name] = true
		in := map[string]bool{}
		for _, t := range s.Inputs {
			if in[t.Name] {
				return fmt.Errorf("stage %q: two inputs are named %q", s.Name, t.Name)
			}
			in[t.Name] = true
		}
		for _, t := range s.Outputs {
			if s.Kind == Augment && !in[t.Name] {
				return fmt.Errorf("stage %q: output %q is not an input: an augment stage edits its inputs in place",
					s.Name, t.Name)
			}
		}
		for _, key := range s.Files {
			if properties, _ := s.Config["properties"].(map[string]any); properties[key] == nil {
				return fmt.Errorf("stage %q: files has %q, which is not a property of config", s.Name, key)
			}
		}
		if err := p.checkData(&s); err != nil {
			return err
		}
		if err := s.checkGrowth(); err != nil {
			return err
		}
		if s.Cacheable && (s.Kind != Preprocess || !s.Deterministic) {
			return fmt.Errorf("stage %q: cacheable needs the kind %s and deterministic", s.Name, Preprocess)
		}
	}
	return nil
}

// Command returns the command for this machine: an executable relative to the plugin's folder, or the argv of a script.
func (p *Plugin) Command() ([]string, error) {
	if len(p.Argv) > 0 {
		return p.Argv, nil
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	exe, ok := p.Executable[platform]
	if !ok {
		return nil, fmt.Errorf("plugin %s has no executable for %s", p.ID, platform)
	}
	return []string{exe}, nil
}

// GPUCommand returns the executable on this machine for a process that is given a GPU, or "" if Command applies.
func (p *Plugin) GPUCommand() string { return p.Executable[runtime.GOOS+"_"+runtime.GOARCH+"_cuda"] }

// Stage returns the stage of that name, or false.
func (p *Plugin) Stage(name string) (Stage, bool) {
	for _, s := range p.Stages {
		if s.Name == name {
			return s, true
		}
	}
	return Stage{}, false
}
