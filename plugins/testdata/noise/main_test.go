package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

func TestNoise(t *testing.T) {
	dir := t.TempDir()
	le := binary.LittleEndian
	for name, samples := range map[string]int{"a.wav": 100, "more/b.wav": 3000, ".hidden": 0} {
		b := le.AppendUint32([]byte("RIFF"), uint32(36+2*samples))
		b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
		b = le.AppendUint16(le.AppendUint16(b, 1), 1)
		b = le.AppendUint32(le.AppendUint32(b, 22050), 44100)
		b = le.AppendUint16(le.AppendUint16(b, 2), 16)
		b = le.AppendUint32(append(b, "data"...), uint32(2*samples))
		for i := range samples {
			b = le.AppendUint16(b, uint16(40503*i))
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	stagetest.Run(t, func() stage.Stage { return new(noise) }, stagetest.Options{
		Manifest: "plugin.json", Stage: "noise", Data: map[string]string{"noise": dir},
		Features: manifest.Features{SampleRate: 22050}, Buckets: []manifest.Bucket{{"T_wav": 400}, {"T_wav": 900}},
	})
}
