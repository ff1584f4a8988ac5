package stagetest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/shared/folder"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stagepb"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// dataFolders returns the data folders of a stage: those of the options, and for recordings that it needs a folder of
// noise.
func dataFolders(t *testing.T, spec manifest.Stage, o Options) (map[string]*stagepb.DataFolder, error) {
	paths := maps.Clone(o.Data)
	if paths == nil {
		paths = map[string]string{}
	}
	for name := range paths {
		if _, ok := spec.Data[name]; !ok {
			return nil, fmt.Errorf("stage %q declares no data folder %q", spec.Name, name)
		}
	}
	for _, name := range spec.DataNames() {
		switch declared := spec.Data[name]; {
		case paths[name] != "" || declared.Optional:
		case declared.Kind != manifest.AudioData:
			return nil, fmt.Errorf("the stage needs folder %q: set Data to map[string]string{%[1]q: DIR}", name)
		default:
			paths[name] = t.TempDir()
			if err := writeNoise(paths[name], o.Features.SampleRate); err != nil {
				return nil, err
			}
		}
	}
	all := map[string]*stagepb.DataFolder{}
	for name, path := range paths {
		var err error
		if all[name], err = list(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// writeNoise writes three short recordings of noise.
func writeNoise(dir string, rate int) error {
	for i, data := range wav.Noises(rate) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("noise-%d.wav", i+1)), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// list lists the files of a data folder as the host does. It does not look whether they are recordings, and one that
// cannot be read is an error.
func list(path string) (*stagepb.DataFolder, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	all := &stagepb.DataFolder{Path: root}
	add := func(name string, info fs.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() || !utf8.ValidString(name) {
			return nil // such as a link that leads nowhere
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		sum := sha256.Sum256(content)
		all.Files = append(all.Files, &stagepb.DataFile{Name: name, Size: uint64(len(content)), Sha256: sum[:]})
		return err
	}
	err = folder.Walk(folder.Disk{ReadDir: os.ReadDir, Stat: os.Stat}, root, add)
	slices.SortFunc(all.Files, func(a, b *stagepb.DataFile) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}
