package plugintest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/datafolder"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// knownData refuses a data folder that no stage has.
func knownData(data map[string]string, stages []manifest.Stage) error {
	var all []string
	for _, s := range stages {
		for _, name := range s.DataNames() {
			all = append(all, name, catalog.DataName(s.Name, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if slices.Contains(all, name) {
			continue
		}
		advice := "leave the flag out: no stage of the plugin has data folders"
		if len(all) > 0 {
			advice = cmp.Or(hint.DidYouMean(name, all), "there are "+strings.Join(all, ", "))
		}
		return hint.Errorf(advice, "--plugin-data %s: no stage of the plugin has such a data folder", name)
	}
	return nil
}

// giveData gives the stage its data folders: those of Config.Data, and for recordings that it needs a folder of noise.
func (t *subject) giveData(ctx context.Context) error {
	in := &t.stages.Instances[0]
	in.Data = map[string]catalog.DataFolder{}
	for _, name := range t.stage.DataNames() {
		declared := t.stage.Data[name]
		path := cmp.Or(t.cfg.Data[catalog.DataName(t.stage.Name, name)], t.cfg.Data[name])
		switch {
		case path != "":
		case declared.Optional:
			continue
		case declared.Kind != manifest.AudioData:
			return hint.Errorf("name it with --plugin-data "+name+"=DIR", "the stage needs data folder %q", name)
		default:
			var err error
			if path, err = t.noiseFolder(); err != nil {
				return err
			}
		}
		f, err := datafolder.Open(ctx, datafolder.Config{Title: name, Path: path, Kind: declared.Kind})
		if err != nil {
			return err
		}
		in.Data[name] = f.DataFolder
	}
	return nil
}

// noiseFolder makes a folder with three short recordings of noise, once.
func (t *subject) noiseFolder() (string, error) {
	if t.temp != nil {
		return t.temp.String(), nil
	}
	dir, lock, err := files.At(os.TempDir()).Temp("xtts-host-noise-", "")
	if err != nil {
		return "", err
	}
	t.temp, t.tempLock = &dir, lock
	for i, data := range wav.Noises(t.cfg.Bundle.Manifest.Features.SampleRate) {
		if err := dir.Join(fmt.Sprintf("noise-%d.wav", i+1)).Write(data); err != nil {
			return "", err
		}
	}
	return dir.String(), nil
}
