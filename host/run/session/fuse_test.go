package session

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestFusionIsReported: what the start of a run says about the fused graph, and what is a warning or an error.
func TestFusionIsReported(t *testing.T) {
	missing := hint.Errorf("fetch it", "load NVRTC: not found")
	for _, c := range []struct {
		name, text string
		mode       config.Switch
		attention  config.Attention
		before     error // why there is no compiler
		prepared   train.Prepared
		warnings   []string
		refused    string
	}{
		{
			name: "fused", mode: "auto",
			prepared: formed(train.Form{Fusion: &train.Fusion{Kernels: 9, Distances: []float64{1e-7, 2e-7}}}),
			text:     "9 kernels, within 2e-07 of the graph as exported; 0.0 s to compile, 0.0 s to prove",
		},
		{
			name: "a slow graph", mode: "auto",
			prepared: formed(train.Form{Fusion: &train.Fusion{Kernels: 9, Predicted: &cost.Prediction{
				MS: 10, Slow: []cost.Slow{{
					Why: "windows are in memory", Mend: cost.Channels, MS: 2,
					Kinds: []cost.Kind{{Tensors: []string{"y"}}},
				}},
			}}}),
			text: "9 kernels, within 0 of the graph as exported; a step of the largest bucket is predicted to take " +
				"10 ms; 0.0 s to compile, 0.0 s to prove",
			warnings: []string{"the fused graph is slow: of a predicted step of 10 ms, 2 ms take more than twice " +
				"their floor: 2 ms in y: windows are in memory; channels that are a multiple of 8 mend that. "},
		},
		{
			name: "a convolution without cuDNN", mode: "auto",
			prepared: formed(train.Form{Fusion: &train.Fusion{Kernels: 9, Refused: []string{
				"bucket 0: convolution of [2 1 9 8]: failure 3", "bucket 1: convolution of [2 1 99 8]: failure 3",
			}}}),
			text: "9 kernels, within 0 of the graph as exported; 2 convolutions without cuDNN, with windows in " +
				"memory, such as bucket 1: convolution of [2 1 99 8]: failure 3; 0.0 s to compile, 0.0 s to prove",
		},
		{name: "a faulty kernel", mode: "on", prepared: formed(train.Form{
			Fusion: &train.Fusion{Kernels: 9, Faulty: []string{"bucket 1: Exp, which computes y: CUDA failure 9"}},
		}),
			text: "9 kernels, within 0 of the graph as exported; 1 faulty kernel not used; 0.0 s to compile, 0.0 " +
				"s to prove",
			warnings: []string{"a kernel of the fused graph is faulty, so it is not used: bucket 1: Exp, which " +
				"computes y: CUDA failure 9; the results of this run are right; please report"}},
		{name: "many faulty kernels", mode: "auto", prepared: formed(
			train.Form{Fusion: &train.Fusion{Kernels: 9, Faulty: make([]string, 11)}},
		),
			text: "9 kernels, within 0 of the graph as exported; 11 faulty kernels not used; 0.0 s to compile, " +
				"0.0 s to prove",
			warnings: append(
				make([]string, 8), "3 more kernels of the fused graph are faulty and not used; report.json names them",
			)},
		{name: "results that prove nothing", mode: "on", prepared: formed(train.Form{
			Fusion: &train.Fusion{Kernels: 9, Unproved: []string{"grad.a", "grad.b", "grad.c", "grad.d", "loss"}},
		}), text: "9 kernels, within 0 of the graph as exported; 5 results not proved, since zero, not " +
			"finite or mostly roundings: grad.a, grad.b, grad.c, 2 more; 0.0 s to compile, 0.0 s to prove"},
		{
			name: "off", mode: "off", before: errUnfused, prepared: formed(train.Form{}),
			text: "none: --fuse off",
		},
		{
			name: "no NVRTC", mode: "auto", before: missing, prepared: formed(train.Form{}),
			text: "none: load NVRTC: not found", warnings: []string{
				"the training graph is not fused, so a step takes about twice as long: load NVRTC: not found; fetch it",
			},
		},
		{name: "cannot be fused", mode: "auto", prepared: formed(train.Form{
			Unfused: errors.New("opset 17"),
		}), text: "none: opset 17", warnings: []string{"the training graph is not fused, so a step takes about twice " +
			"as long: opset 17; report this error with the model"}},
		{
			name: "no attention", mode: "auto", attention: "bf16",
			prepared: formed(train.Form{Fusion: &train.Fusion{Kernels: 3, Distances: []float64{0}}}),
			text:     "3 kernels, within 0 of the graph as exported; 0.0 s to compile, 0.0 s to prove",
			warnings: []string{"--attention bf16 has no effect"},
		},
		{name: "players", mode: "auto", prepared: formed(
			train.Form{Player: "judge", Fusion: &train.Fusion{Kernels: 9, Faulty: []string{"bucket 1: Exp"}}},
			train.Form{Player: "maker", Unfused: errors.New("opset 17")}),
			text: "judge: 9 kernels, within 0 of the graph as exported; 1 faulty kernel not used; 0.0 s to " +
				"compile, 0.0 s to prove\nmaker: none: opset 17",
			warnings: []string{
				"a kernel of the fused graph of judge is faulty, so it is not used: bucket 1: Exp;",
				"the training graph of maker is not fused",
			}},
		{
			name: "evaluation", mode: "on", prepared: train.Prepared{
				Forms:      []train.Form{{Fusion: &train.Fusion{Kernels: 9}}},
				Evaluation: train.Form{Fusion: &train.Fusion{Kernels: 3, Faulty: []string{"bucket 1: Exp"}}},
			},
			text: "9 kernels, within 0 of the graph as exported; 0.0 s to compile, 0.0 s to prove\nevaluation: 3 " +
				"kernels, within 0 of the graph as exported; 1 faulty kernel not used; 0.0 s to compile, 0.0 s to " +
				"prove",
			warnings: []string{"a kernel of the fused graph of evaluation is faulty, so it is not used: bucket 1: Exp"},
		},
		{
			name: "evaluation as exported", mode: "on", prepared: train.Prepared{
				Forms:      []train.Form{{Fusion: &train.Fusion{Kernels: 9}}},
				Evaluation: train.Form{Unfused: errors.New("opset 17")},
			},
			text: "9 kernels, within 0 of the graph as exported; 0.0 s to compile, 0.0 s to prove\nevaluation: none: " +
				"opset 17",
			warnings: []string{
				"the evaluation graph is not fused, so it needs more memory than training: opset 17",
			},
		},
		{
			name: "has to be fused", mode: "on", prepared: formed(train.Form{Unfused: errors.New("opset 17")}),
			refused: "--fuse on: opset 17",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines bytes.Buffer
			f := Fusion{reason: c.before}
			err := f.prepared(&config.Config{Fuse: c.mode, Attention: c.attention}, c.prepared,
				slog.New(slog.NewTextHandler(&lines, nil)))
			if c.refused != "" {
				if err == nil || err.Error() != c.refused ||
					!strings.HasSuffix(hint.Of(err), ", or train with --fuse auto") {
					t.Errorf("%v; hint: %s", err, hint.Of(err))
				}
				return
			}
			if text := strings.Join(f.Lines(), "\n"); err != nil || text != c.text {
				t.Errorf("%q, %v", text, err)
			}
			if n := strings.Count(lines.String(), "level=WARN"); n != len(c.warnings) {
				t.Errorf("%d warnings: %s", n, &lines)
			}
			for _, w := range c.warnings {
				if !strings.Contains(lines.String(), w) {
					t.Errorf("no warning %q in %s", w, &lines)
				}
			}
		})
	}
}

// formed is the result of trial runs of players with such graphs.
func formed(all ...train.Form) train.Prepared { return train.Prepared{Forms: all} }

// TestSearchCompilesNothing: trials of smaller batches run the graph as exported, even where NVRTC would be required.
func TestSearchCompilesNothing(t *testing.T) {
	p := &plan.Plan{
		Config:    &config.Config{Fuse: "on"},
		Placement: place.Placement{Model: place.Role{GPU: gpu.Device{UUID: "GPU-1"}}},
	}
	s := &Session{plan: p, Fusion: Fusion{never: true}}
	var c train.FuseConfig
	if err := addCompiler(s, &c); c.Compiler != nil || err != nil || s.Fusion.tried {
		t.Error(c, err)
	}
}
