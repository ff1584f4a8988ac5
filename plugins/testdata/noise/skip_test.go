package main

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

// TestSkips: a recording with a good header and a bad sample is skipped; a folder with no other is refused.
func TestSkips(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, samples ...float32) {
		le := binary.LittleEndian
		b := le.AppendUint32([]byte("RIFF"), uint32(36+4*len(samples)))
		b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
		b = le.AppendUint16(le.AppendUint16(b, 3), 1)
		b = le.AppendUint32(le.AppendUint32(b, 22050), 88200)
		b = le.AppendUint16(le.AppendUint16(b, 4), 32)
		b = le.AppendUint32(append(b, "data"...), uint32(4*len(samples)))
		for _, v := range samples {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("bad.wav", 0.1, float32(math.NaN()), 0.1)
	write("good.wav", 0.1, -0.1)
	stagetest.Run(t, func() stage.Stage { return new(noise) }, stagetest.Options{
		Manifest: "plugin.json", Stage: "noise", Data: map[string]string{"noise": dir},
		Buckets: []manifest.Bucket{{"T_wav": 40}},
	})

	var log bytes.Buffer
	folder := stage.DataFolder{Path: dir, Files: []stage.DataFile{{Name: filepath.Join(dir, "bad.wav")}}}
	err := new(noise).Configure(t.Context(), &stage.Config{
		Data: map[string]stage.DataFolder{"noise": folder}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Features: manifest.Features{SampleRate: 22050},
	})
	if err == nil || !strings.Contains(log.String(), "a recording is skipped") ||
		!strings.Contains(log.String(), "bad.wav") {
		t.Errorf("%v, %s", err, &log)
	}
}
