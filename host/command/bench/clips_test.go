package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// TestClipsLeaveRoom: clips fit the largest bucket when stages have made them as long as they may.
func TestClipsLeaveRoom(t *testing.T) {
	bundle, err := ortgraphs.Load("../../../ortgraphs/testdata/pico")
	if err != nil {
		t.Fatal(err)
	}
	plugins := t.TempDir()
	for _, name := range []string{"augment", "features"} {
		text, err := os.ReadFile(filepath.Join("../../../plugins", name, "plugin.json"))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(plugins, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string][]byte{
			"plugin.json": text, name + "_linux_" + runtime.GOARCH: []byte("#!/bin/sh\n"),
		} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	buckets := bundle.Manifest.Buckets
	limit := buckets[len(buckets)-1]["T_wav"]
	for _, c := range []struct {
		augment []string
		growth  float64 // at least
	}{{nil, 1}, {[]string{"tempo"}, 1.1}, {[]string{"tempo", "speed"}, 1.2}} {
		set := config.New()
		set.Plugins, set.Augment = plugins, c.augment
		factor := growth(bundle, set)
		if factor < c.growth {
			t.Errorf("%q: growth %g, want %g or more", c.augment, factor, c.growth)
		}
		dir := filepath.Join(t.TempDir(), "data")
		if err := MakeClips(dir, bundle, 4, set); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"clip-0000.wav", "clip-0003.wav"} {
			clip, err := os.ReadFile(filepath.Join(dir, "wavs", file))
			if err != nil {
				t.Fatal(err)
			}
			samples := (len(clip) - len(wav.File(bundle.Manifest.Features.SampleRate, nil))) / 2
			if long := factor * float64(samples); long > float64(limit) || long < 0.85*float64(limit) {
				t.Errorf("%q: %s has %d samples, which become up to %g of %d", c.augment, file, samples, long, limit)
			}
		}
	}
}
