package bench

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// long is a plugin with a stage that lengthens rows to 40 times their length.
const long = `{"id": "long", "version": "1.0.0", "protocol": 1, "license": "MIT", "description": "long",
"executable": {"linux_amd64": "long_linux_amd64", "linux_arm64": "long_linux_arm64"},
"stages": [{"name": "long", "kind": "augment", "max_growth": 40, "deterministic": true,
"inputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"], "lengths": "waveform_lengths"},
{"name": "waveform_lengths", "dtype": "i32", "shape": ["B"]}],
"outputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"], "lengths": "waveform_lengths"},
{"name": "waveform_lengths", "dtype": "i32", "shape": ["B"]}]}]}`

// TestClipsLeaveRoom: clips fit the largest bucket when stages have made them as long as they may.
func TestClipsLeaveRoom(t *testing.T) {
	bundle, err := ortgraphs.Load("../../../ortgraphs/testdata/pico")
	if err != nil {
		t.Fatal(err)
	}
	plugins := t.TempDir()
	for _, name := range []string{"augment", "features", "long"} {
		text := []byte(long)
		if name != "long" {
			var err error
			if text, err = os.ReadFile(filepath.Join("../../../plugins", name, "plugin.json")); err != nil {
				t.Fatal(err)
			}
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
		growth  float64
	}{{nil, 1}, {[]string{"tempo"}, 1 / 0.9}, {[]string{"tempo", "speed"}, 1 / 0.9 / 0.9}, {[]string{"long"}, 40}} {
		set := config.New()
		set.Plugins, set.Augment = plugins, c.augment
		factor := growth(bundle, set)
		if math.Abs(factor-c.growth) > 1e-9 {
			t.Errorf("%q: growth %g, want %g", c.augment, factor, c.growth)
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
