package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestFakeGPU runs the scripts below testdata/fakegpu with all of the program that has CUDA, on cards of which each
// keeps its memory on the host and has the CPU compute: see scripts/cuda-fake.sh. They start on one card of 1024 MB,
// by the flags' default; XTTS_PLUGIN_TEST_FAKE_CARDS asks for others. $MIXED is $PICO with a bf16 graph, which the
// CPU can run, and $SINGLE with one bucket, of which $PLAYERS has two players and state; $FROZEN is $PICO with an
// inference graph for a stage. They have two commands more:
//
//	same RUN...     these runs have equal losses and gradient norms, and saved equal weights and moments, to the last bit
//	close RUN RUN   their losses differ by less than a millionth, and what they saved is not the same
func TestFakeGPU(t *testing.T) {
	const folder, realRuntime = "LD_LIBRARY_PATH", "XTTS_PLUGIN_TEST_FAKE_ORT"
	if os.Getenv(realRuntime) == "" {
		t.Skip("scripts/test-cuda.sh runs this on fake GPUs")
	}
	p := scripts(t, "testdata/fakegpu")
	plugins := t.TempDir()
	for _, id := range []string{"features", "augment", "inference"} {
		buildPlugin(t, plugins, id)
	}
	mixed := bundletest.Mixed(t, absolute(t, "..", "..", "ortgraphs", "testdata", "pico")).Dir
	single := bundletest.Rewrite(t, absolute(t, "..", "..", "ortgraphs", "testdata", "pico"),
		func(_ string, m *manifest.Bundle) { m.Buckets, m.Cost = m.Buckets[2:], nil }).Dir
	players := bundletest.WithPlayers(t, bundletest.Stateful(t, single).Dir, func(name string) bool {
		return strings.HasPrefix(name, "text_encoder.") || strings.HasPrefix(name, "statistics.") ||
			name == "metric.stop_loss"
	}, nil).Dir
	frozen := bundletest.Frozen(t, absolute(t, "..", "..", "ortgraphs", "testdata", "pico")).Dir
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		for _, name := range []string{folder, realRuntime} {
			env.Setenv(name, os.Getenv(name))
		}
		err := setup(env)
		env.Setenv(ort.LibraryEnv, os.Getenv(ort.LibraryEnv))
		env.Setenv("XTTS_HOST_DEVICE", "auto")
		env.Setenv("MIXED", mixed)
		env.Setenv("SINGLE", single)
		env.Setenv("PLAYERS", players)
		env.Setenv("FROZEN", frozen)
		for variable, value := range map[string]string{
			"PLUGINS": plugins, "GRAPH": env.Getenv("PICO"), "BATCH_SIZE": "4",
		} {
			env.Setenv("XTTS_HOST_"+variable, value)
		}
		return err
	}
	p.Cmds["same"], p.Cmds["close"] = same, near
	testscript.Run(t, p)
}

// same is "same RUN...".
func same(ts *testscript.TestScript, neg bool, runs []string) {
	if neg || len(runs) < 2 {
		ts.Fatalf("usage: same RUN RUN...")
	}
	want := outcome(ts, runs[0])
	for _, run := range runs[1:] {
		got := outcome(ts, run)
		for i, file := range []string{"metrics.jsonl", "params.safetensors", "optimizer.safetensors"} {
			if !bytes.Equal(got[i], want[i]) {
				ts.Fatalf("%s of %s and %s differ", file, runs[0], run)
			}
		}
	}
}

// near is "close RUN RUN".
func near(ts *testscript.TestScript, neg bool, runs []string) {
	if neg || len(runs) != 2 {
		ts.Fatalf("usage: close RUN RUN")
	}
	var losses [2][]float64
	for i, run := range runs {
		for line := range bytes.Lines([]byte(ts.ReadFile(filepath.Join(run, "metrics.jsonl")))) {
			var fields struct{ Loss float64 }
			ts.Check(json.Unmarshal(line, &fields))
			losses[i] = append(losses[i], fields.Loss)
		}
	}
	if len(losses[0]) == 0 || len(losses[0]) != len(losses[1]) {
		ts.Fatalf("the losses are %v and %v", losses[0], losses[1])
	}
	for i, want := range losses[0] {
		if got := losses[1][i]; !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
			ts.Fatalf("the losses are %v and %v", losses[0], losses[1])
		}
	}
	// A loss is one number, in which a difference may be rounded away; the moments are thousands.
	const moments = 2
	if a, b := outcome(ts, runs[0]), outcome(ts, runs[1]); bytes.Equal(a[moments], b[moments]) {
		ts.Fatalf("the two runs are the same, and were to differ in some last bits")
	}
}

// outcome returns the losses and norms of a run's steps, and the two large files of its last checkpoint.
func outcome(ts *testscript.TestScript, run string) (files [3][]byte) {
	for line := range bytes.Lines([]byte(ts.ReadFile(filepath.Join(run, "metrics.jsonl")))) {
		var fields struct {
			Step     json.Number
			Loss     json.Number
			GradNorm json.Number `json:"grad_norm"`
		}
		ts.Check(json.Unmarshal(line, &fields))
		for _, n := range []json.Number{fields.Step, fields.Loss, fields.GradNorm} {
			files[0] = append(append(files[0], n...), ' ')
		}
	}
	saved, err := filepath.Glob(ts.MkAbs(filepath.Join(run, "checkpoints", "step-*")))
	ts.Check(err)
	if len(files[0]) == 0 || len(saved) == 0 {
		ts.Fatalf("%s has no steps, or no checkpoint", run)
	}
	last := saved[len(saved)-1] // in the order of the steps
	for i, name := range []string{"params.safetensors", "optimizer.safetensors"} {
		files[1+i], err = os.ReadFile(filepath.Join(last, name))
		ts.Check(err)
	}
	return files
}
