package main

import (
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
)

const (
	benchRate    = 22050 // Hz
	benchSeconds = 5     // of the clip that each stage gets
)

// step is a stage with a configuration.
type step struct{ stage, config string }

// benchmarks are stages of waveforms, each alone, with the configurations that scripts/bench_augment compares.
var benchmarks = map[string][]step{
	"noise-white":       {{"noise", `{"colors": ["white"]}`}},
	"noise-pink":        {{"noise", `{"colors": ["pink"]}`}},
	"background":        {{"background", ``}},
	"gain":              {{"gain", ``}},
	"loudness":          {{"loudness", ``}},
	"clipping-hard":     {{"clipping", `{"kinds": ["hard"]}`}},
	"clipping-soft":     {{"clipping", `{"kinds": ["soft"]}`}},
	"companding-g711":   {{"companding", `{"laws": ["mu"]}`}},
	"companding-mu":     {{"companding", `{"laws": ["mu"], "coding": "continuous", "bits_min": 8, "bits_max": 8}`}},
	"shift":             {{"shift", `{"mode": "circular"}`}},
	"trim":              {{"trim", ``}},
	"dropout":           {{"dropout", ``}},
	"equalizer-peaking": {{"equalizer", `{"kinds": ["peaking"], "count_min": 1, "count_max": 1}`}},
	"equalizer-seven":   {{"equalizer", `{"kinds": ["peaking"], "count_min": 7, "count_max": 7}`}},
	"speed":             {{"speed", `{"speed_min": 1.1, "speed_max": 1.1}`}},
	"tempo":             {{"tempo", `{"tempo_min": 1.1, "tempo_max": 1.1}`}},
	"pitch":             {{"pitch", `{"semitones_min": 2, "semitones_max": 2}`}},
	"reverb":            {{"reverb", ``}}, // a response of 1 s
	"room":              {{"room", ``}},
	"chain-six": {
		{"gain", ``}, {"equalizer", `{"kinds": ["peaking"], "count_min": 7, "count_max": 7}`},
		{"noise", `{"colors": ["white"]}`}, {"reverb", ``}, {"clipping", `{"kinds": ["soft"]}`}, {"loudness", ``},
	},
	"chain-of-librosa": {
		{"trim", ``}, {"speed", `{"speed_min": 1.1, "speed_max": 1.1}`},
		{"tempo", `{"tempo_min": 1.1, "tempo_max": 1.1}`}, {"pitch", `{"semitones_min": 2, "semitones_max": 2}`},
		{"companding", `{"laws": ["mu"], "coding": "continuous", "bits_min": 8, "bits_max": 8}`}, {"gain", ``},
	},
	"telephone": {{"equalizer", `{"kinds": ["telephone"], "count_min": 1, "count_max": 1}`}},
}

// BenchmarkStages applies stages to a clip of 5 s at 22,050 Hz, on one core. It reports seconds of audio per second,
// and the time of the processor, which other work on the machine disturbs less. A stage changes the row in place, so
// each repetition copies the clip first: the processor's time for these copies is measured, too, and subtracted.
func BenchmarkStages(b *testing.B) {
	clip := effecttest.Speech(benchRate*benchSeconds, benchRate)
	for name, steps := range benchmarks {
		b.Run(name, func(b *testing.B) {
			var effects []waveform.Effect
			for _, s := range steps {
				o := effecttest.Options{Config: s.config, Folders: folders(b, s)}
				e := effecttest.Must(b, plugin.Stages[s.stage](), o)
				effects = append(effects, e.Stage.Effect)
			}
			rand := effecttest.Generator(1)
			row := waveform.NewRow(clip, 2*len(clip), rand)
			restore := func() { row.Reset(clip, 2*len(clip), rand) }
			work := func() {
				restore()
				for _, e := range effects {
					row.Reset(row.Samples, 2*len(clip), rand)
					if err := e.Apply(row); err != nil {
						b.Fatal(err)
					}
				}
			}
			work()
			b.ReportAllocs()
			before := processor(b)
			for b.Loop() {
				work()
			}
			spent := processor(b) - before
			b.ReportMetric(benchSeconds*float64(b.N)/b.Elapsed().Seconds(), "audio_s/s")
			before = processor(b)
			for range b.N {
				restore()
			}
			spent -= processor(b) - before
			b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
		})
	}
}

// processor returns the time that the process has had of the processor.
func processor(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// folders makes the data folder that a stage needs.
func folders(b *testing.B, s step) map[string]string {
	all := map[string]string{}
	switch s.stage {
	case "background":
		all["background"] = effecttest.Folder(b, benchRate, effecttest.Noise(20*benchRate))
	case "reverb":
		response := effecttest.Noise(benchRate)
		for i, x := range response {
			response[i] = float32(0.5 * float64(x) * math.Exp(-6.9*float64(i)/benchRate))
		}
		response[100] = 0.99
		all["responses"] = effecttest.Folder(b, benchRate, response)
	}
	return all
}
