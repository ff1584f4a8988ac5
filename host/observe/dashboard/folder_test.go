package dashboard

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// said are the texts that evaluations of a large run speak.
var said = []struct{ language, text string }{
	{"en", "The lamp went out twice tonight."},
	{"fa", "شب آرام بود و باران نرم روی شیشه می\u200cبارید."},
	{"zh", "今天晚上,灯灭了两次,我们一直等到天亮。"},
	{"en", "We picked cherries until dark, and carried them home in two baskets."},
}

// voices are the sounds that were made, by the arguments of voice: under the race detector each takes a second.
var voices sync.Map

// voice returns a sound with the harmonics and the pauses of speech. clear is how much of it is not noise, 0 to 1.
func voice(seed uint64, clear float64) []byte {
	key := fmt.Sprint(seed, clear)
	made, ok := voices.Load(key)
	if !ok {
		made, _ = voices.LoadOrStore(key, makeVoice(seed, clear))
	}
	return made.([]byte)
}

func makeVoice(seed uint64, clear float64) []byte {
	const rate = 24000
	rng := rand.New(rand.NewPCG(seed, 7))
	samples := make([]int16, 2*rate)
	phase := 0.0
	for i := range samples {
		t := float64(i) / rate
		pitch := 140 + 40*math.Sin(2*math.Pi*0.9*t) + 12*math.Sin(2*math.Pi*2.3*t)
		phase += 2 * math.Pi * pitch / rate
		formant := 650 + 380*math.Sin(2*math.Pi*1.4*t)
		v := 0.0
		for k := 1; k < 40; k++ {
			f := float64(k) * pitch
			low, high := (f-formant)/260, (f-2.6*formant)/420
			v += (math.Exp(-low*low) + 0.6*math.Exp(-high*high) + 0.02) * math.Sin(float64(k)*phase)
		}
		loud := math.Pow(math.Max(0, math.Sin(2*math.Pi*1.7*t)), 0.4)
		v = clear*v*loud + (1-clear)*0.5*rng.NormFloat64() + 0.002*rng.NormFloat64()
		samples[i] = wav.Sample(float32(0.18 * v))
	}
	return wav.File(rate, samples)
}

// large writes the folder of a run of so many steps, whose evaluations have spoken so many texts in all.
func large(t testing.TB, steps, spoken int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "voice-of-three-languages")
	rng := rand.New(rand.NewPCG(1, 2))
	var metrics strings.Builder
	loss := func(step int) float64 { return 0.42 + 1.9*math.Exp(-float64(step)/(0.12*float64(steps))) }
	for step := 1; step <= steps; step++ {
		l := loss(step) * (1 + 0.07*rng.NormFloat64())
		fmt.Fprintf(&metrics, `{"step":%d,"epoch":%d,"loss":%.6g,"mel_loss":%.6g,"stop_loss":%.5g,"lr":%.5g,`+
			`"grad_norm":%.4g,"step_ms":%.2f,"input_wait_ms":%.3f,"samples":16,"frames":2210,"bucket":1}`+"\n", step,
			step/800, l, 0.7*l*(1+0.05*rng.NormFloat64()), 0.02+0.3*l*l/4,
			0.0003*min(1, float64(step)/2000)*(0.5+0.5*math.Cos(math.Pi*float64(step)/float64(steps))),
			1+0.4*rng.ExpFloat64(), 96+6*rng.ExpFloat64(), 0.4*rng.ExpFloat64())
	}
	write(t, dir, rundir.MetricsFile, []byte(metrics.String()))
	largeSpeech(t, dir, steps, spoken, loss)
	largeLists(t, dir, steps)
	return dir
}

// largeSpeech writes evaluations and what they have spoken. Most of the sounds are one file with several names.
func largeSpeech(t testing.TB, dir string, steps, spoken int, loss func(int) float64) {
	t.Helper()
	var evals, lines strings.Builder
	n := max(3, spoken/len(said))
	for i := 1; i <= n; i++ {
		step := steps * i / n
		done := float64(i) / float64(n)
		fmt.Fprintf(&evals, `{"step":%d,"loss":%.5g,"mel_loss":%.5g,"samples":64,"eval_ms":900}`+"\n", step,
			1.04*loss(step)+0.25*done*done, 0.73*loss(step)+0.2*done*done)
		for k, s := range said {
			name := fmt.Sprintf("samples/%s/clip-%d.wav", rundir.Step(int64(step)), k+1)
			reference := fmt.Sprintf("samples/reference/clip-%d.wav", k+1)
			if i == 1 {
				write(t, dir, reference, voice(uint64(k), 1))
				write(t, dir, name, voice(uint64(k), 0.2))
			} else {
				place := 0.93
				if i < n/2 {
					place = 0.7
				}
				last := filepath.Join(dir, fmt.Sprintf("kept-%d-%g", k, place))
				if _, err := os.Stat(last); err != nil {
					write(t, dir, filepath.Base(last), voice(uint64(k), place))
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Link(last, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			line, err := json.Marshal(map[string]any{
				"step": step, "clip": k + 1, "id": fmt.Sprintf("A/%04d", k+1), "text": s.text, "language": s.language,
				"file": name, "reference": reference, "seconds": 2, "ended": i > 1,
				"measures": map[string]float64{
					"length_ratio": 1 + 1.4*(1-done)*(1-done), "mcd_db": 5.2 + 4*math.Exp(-3*done),
					"f0_cents": 90 + 300*math.Exp(-4*done), "silence": 0.1,
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(line, '\n'))
		}
	}
	write(t, dir, rundir.EvalFile, []byte(evals.String()))
	write(t, dir, rundir.SpokenFile, []byte(lines.String()))
}

// largeLists writes the other files: report, settings, log, clips, checkpoints and the log of a rank.
func largeLists(t testing.TB, dir string, steps int) {
	t.Helper()
	r := report.Report{
		Version: 1, Bundle: "xtts-v2", Device: "GPU 0: NVIDIA H100 PCIe", Precision: "bf16", Outcome: report.Done,
		Steps: int64(steps), WallS: 9800, InputStallRatio: 0.004,
		Verdict: report.Verdict{Advice: []string{"The input pipeline is not the bottleneck: input stall 0.4 %. A " +
			"larger --batch-size trains more frames per second while memory lasts."}},
		PhasesMs: report.Phases{{Name: "decode", Ms: 3.1}, {Name: "waveaug", Ms: 2.2}, {Name: "mel", Ms: 7.4},
			{Name: "transfer", Ms: 0.4}, {Name: "wait", Ms: 0.4}, {Name: "train", Ms: 81}, {Name: "optimizer",
				Ms: 12.2},
			{Name: "other", Ms: 2.6}, {Name: "gpu_train", Ms: 80.1}, {Name: "gpu_optimizer", Ms: 11.4}},
		Memory: []report.Memory{
			{Device: "GPU 0: NVIDIA H100 PCIe", Role: "model", LimitBytes: 72 << 30, ProcessPeakBytes: 63 << 30},
			{Device: "GPU 1: NVIDIA L4", Role: "data", LimitBytes: 8 << 30, ProcessPeakBytes: 2 << 30},
		},
		Utilization: []report.Utilization{{Device: "GPU 0: NVIDIA H100 PCIe", Role: "model", Mean: 0.97, Samples: 900},
			{Device: "GPU 1: NVIDIA L4", Role: "data", Mean: 0.34, Samples: 900}},
		Plugins: []report.Plugin{{ID: "augment", Workers: 2, Ranks: 1, Calls: 200_000, P50Ms: 2.1, P99Ms: 6.4,
			PeakMemoryBytes: 48 << 20}, {ID: "features", Workers: 2, Ranks: 1, Restarts: 1, Calls: 200_004, Lost: 1,
			P50Ms: 7.2, P99Ms: 14.8, PeakMemoryBytes: 230 << 20}},
		Ranks: []report.Rank{{Rank: 0, Host: "node-a", Device: "GPU 0: NVIDIA H100 PCIe", OwnMs: 81.4, StepMs: 96.2,
			InputStallRatio: 0.004, Memory: []report.Memory{{ProcessPeakBytes: 63 << 30}}}, {Rank: 1, Host: "node-b",
			Device: "GPU 0: NVIDIA H100 PCIe", OwnMs: 82, StepMs: 96.2, InputStallRatio: 0.003,
			Memory: []report.Memory{{ProcessPeakBytes: 63 << 30}}}},
	}
	text, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, rundir.ReportFile, text)
	write(t, dir, rundir.SettingsFile,
		[]byte(fmt.Sprintf("batch_size: 16  # flag\nmax_steps: %d  # flag\nlr: 0.0003  # "+
			"bundle\ntrain_data: \"/data/صداها\"  # flag\nseed: 1  # default\n", steps)))
	var log, clips strings.Builder
	for i := range 60 {
		level, msg := "INFO", "checkpoint"
		if i%20 == 7 {
			level, msg = "WARN", "clip A/0412 has 3.1 s of silence at its end"
		}
		fmt.Fprintf(&log, `{"time":"2026-03-02T%02d:%02d:11.5Z","level":"%s","msg":"%s","step":%d}`+"\n", 9+i/60, i%60,
			level,
			msg, (i+1)*steps/60)
	}
	write(t, dir, rundir.LogFile, []byte(log.String()))
	write(t, dir, "ranks/1/log.jsonl", []byte(log.String()[:400]))
	write(t, dir, "kept-clip.wav", tone())
	for i := range 120 {
		line, err := json.Marshal(map[string]string{
			"id": []string{"A/%04d", "گفتار/%04d", "录音/%04d"}[i%3][:0] + fmt.Sprintf([]string{"A/%04d", "گفتار/%04d",
				"录音/%04d"}[i%3], i), "path": filepath.Join(dir, "kept-clip.wav"), "stage": "decode", "split": "train",
			"reason": []string{"the recording has 0.2 s, less than the shortest that can be used (0.5 s)",
				"the header promises 4.2 s, and the file has 1.1 s"}[i%2],
		})
		if err != nil {
			t.Fatal(err)
		}
		clips.Write(append(line, '\n'))
	}
	write(t, dir, rundir.QuarantineFile, []byte(clips.String()))
	for _, step := range []int{steps / 2, steps} {
		if err := os.MkdirAll(filepath.Join(dir, rundir.Checkpoints, rundir.Step(int64(step))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
