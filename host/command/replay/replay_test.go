package replay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/gpu/inventory"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/run"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/scripts/nightly"
	"github.com/xtts-host/xtts-host/shared/hint"
)

const pico = "../../../ortgraphs/testdata/pico"

var plugins string // a folder with the first-party plugins, built for these tests

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "xtts-host-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	plugins = filepath.Join(dir, "plugins")
	if err := catalogtest.BuildFirstParty(plugins, "../../../plugins"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return orttest.Run(m)
}

func settings(t *testing.T, args ...string) *config.Set {
	t.Helper()
	set := config.New()
	if err := set.Parse(args, []string{"XTTS_HOST_DEVICE=cpu"}); err != nil {
		t.Fatal(err)
	}
	return set
}

// makeRun makes a run, or continues one, that keeps every checkpoint and writes its batches.
func makeRun(t *testing.T, flags ...string) {
	t.Helper()
	always := []string{"--plugins", plugins, "--checkpoint-every", "1", "--keep-last", "0"}
	set := settings(t, append(always, flags...)...)
	var errs bytes.Buffer
	if err := run.Train(t.Context(), set, console.Console{Out: io.Discard, Err: &errs}); err != nil {
		t.Fatalf("%v: %v\n%s", flags, err, &errs)
	}
}

// again replays a step of a run into a folder.
func again(t *testing.T, dir string, step int64, out string) (string, error) {
	t.Helper()
	set := config.New()
	set.ResumeFlag, set.Resume, set.Only = "replay", dir, []string{"plugins", "device"}
	if err := set.Parse([]string{"--plugins", plugins}, []string{"XTTS_HOST_DEVICE=cpu"}); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	err := Run(t.Context(), set, Options{Step: step, Out: out}, console.Console{Out: &said, Err: io.Discard})
	return said.String(), err
}

// feature is a kind of run: the flags of its beginning, and those with which it goes on after some steps.
type feature struct {
	name  string
	graph func(t *testing.T) string // nil for pico
	flags []string
	then  []string // nil: it is not interrupted
}

const steps, before = 10, 5 // steps of a run, and of its beginning if it is interrupted

func features(t *testing.T) []feature {
	players := func(t *testing.T) string {
		return bundletest.WithPlayers(t, pico, func(name string) bool {
			return strings.HasPrefix(name, "text_encoder.") || name == "metric.stop_loss"
		}, nil).Dir
	}
	return []feature{
		{name: "resumed with accumulation and augmentation", flags: []string{
			"--accumulate", "2", "--augment", "waveaug", "--ema", "0.9",
		}, then: []string{"--log-every", "3"}},
		{name: "players with accumulation", graph: players, flags: []string{"--accumulate", "2"}},
		{name: "changed learning rate", flags: []string{"--schedule", "constant"},
			then: []string{"--allow", "lr,batch-size", "--lr", "0.0001", "--batch-size", "3"}},
		{name: "plateau of a metric", flags: []string{"--schedule", "plateau", "--plateau-patience", "1",
			"--eval-every", "1", "--lr", "0.05", "--warmup-steps", "0", "--best-by", "stop_loss"}},
		{name: "plateau", flags: []string{"--schedule", "plateau", "--plateau-patience", "1", "--eval-every", "1",
			"--lr", "0.3", "--warmup-steps", "0"}},
		{name: "plain"},
		{name: "state and freeze", graph: func(t *testing.T) string { return bundletest.Stateful(t, pico).Dir },
			flags: []string{"--freeze", "text_encoder,mel_head.weight", "--ema", "0.8", "--accumulate", "2"}},
		{name: "share", flags: []string{"--train-data", withoutValidation(t), "--val-share", "0.2", "--seed", "7"},
			then: []string{}},
		{name: "longer", flags: []string{"--schedule", "cosine", "--warmup-steps", "2", "--min-lr", "1e-5"},
			then: []string{}},
		{name: "static shapes", flags: []string{"--enable-static-shapes", "--augment", "waveaug"}, then: []string{}},
		{name: "players that go on", graph: players, flags: []string{"--ema", "0.9", "--augment", "waveaug"},
			then: []string{}},
	}
}

// withoutValidation is the sample data with one list.
func withoutValidation(t *testing.T) string {
	t.Helper()
	dir, err := dataset.Sample(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "metadata_eval.csv")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "metadata_train.csv"), filepath.Join(dir, "metadata.csv")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// trained makes the run of a feature, and returns its folder and that of its batches.
func trained(t *testing.T, f feature) (dir, batches string) {
	t.Helper()
	dir, debug := filepath.Join(t.TempDir(), "run"), t.TempDir()
	batches = filepath.Join(debug, "batches")
	if err := os.Mkdir(batches, 0o777); err != nil {
		t.Fatal(err)
	}
	graph := pico
	if f.graph != nil {
		graph = f.graph(t)
	}
	all, first := []string{"--max-steps", fmt.Sprint(steps), "--debug-dir", debug}, fmt.Sprint(steps)
	if f.then != nil {
		first = fmt.Sprint(before)
	}
	makeRun(t, append([]string{
		"--graph", graph, "--batch-size", "4", "--run-dir", dir, "--max-steps", first, "--debug-dir", debug,
	}, f.flags...)...)
	if f.then != nil {
		makeRun(t, append(append([]string{"--resume", dir}, all...), f.then...)...)
	}
	return dir, batches
}

// TestSameBits: the batch, the weights before and after a step, its loss and its gradients are those of the run,
// whatever the run does, from the start and from the middle.
func TestSameBits(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 0))
	all := features(t)
	for i, f := range all[:nightly.Of(4, len(all))] {
		t.Run(f.name, func(t *testing.T) {
			dir, batches := trained(t, f)
			whole := filepath.Join(t.TempDir(), "whole")
			if err := os.CopyFS(whole, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			kept := before
			if i%2 == 1 && f.then == nil {
				kept = 3
			}
			for step := 1; step <= steps; step++ { // what a run keeps by default
				if step != kept && step != steps {
					gone := filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%06d", step))
					if err := os.RemoveAll(gone); err != nil {
						t.Fatal(err)
					}
				}
			}
			was := contents(t, dir)
			for n := range nightly.Of(1, 10) {
				step := 1 + random.Int64N(steps)
				if n == 0 && i == 2 {
					step = before - 1 // with the settings before the change
				}
				if n == 0 && i == 3 {
					step = steps // after evaluations that have lowered the rate
				}
				out := filepath.Join(t.TempDir(), "out")
				said, err := again(t, dir, step, out)
				if err != nil {
					t.Fatalf("step %d: %v\n%s", step, err, said)
				}
				sameStep(t, step, whole, batches, out)
			}
			if now := contents(t, dir); now != was {
				t.Errorf("the folder of the run is another:\n%s\nwas\n%s", now, was)
			}
		})
	}
}

// contents lists the files of a folder with their sizes and times.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		fmt.Fprintln(&out, path, info.Size(), info.ModTime())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// sameStep compares the folder of a step with what the run has kept of it.
func sameStep(t *testing.T, number int64, whole, batches, out string) {
	t.Helper()
	var about step
	text, err := os.ReadFile(filepath.Join(out, stepFile))
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err != nil {
		t.Fatal(err)
	}
	ids := ledger(t, filepath.Join(filepath.Dir(batches), "ledger.jsonl"), number)
	if len(about.Batches) != len(ids) {
		t.Fatalf("step %d: %d batches, the run had %d", number, len(about.Batches), len(ids))
	}
	for i, b := range about.Batches {
		sameTensors(t, filepath.Join(batches, fmt.Sprintf("%06d-%02d.safetensors", number, i)),
			filepath.Join(out, b.File))
		var clips []string
		for _, row := range b.Rows {
			clips = append(clips, row.ID)
		}
		if !slices.Equal(clips, ids[i]) || b.Seed == 0 {
			t.Errorf("step %d: batch %+v, want the clips %v", number, b, ids[i])
		}
	}
	checkpoint := func(step int64) string {
		return filepath.Join(whole, "checkpoints", fmt.Sprintf("step-%06d", step), "params.safetensors")
	}
	if number > 1 {
		sameTensors(t, checkpoint(number-1), filepath.Join(out, about.Weights))
	}
	sameTensors(t, checkpoint(number), filepath.Join(out, about.After))
	sameGradients(t, &about, whole, out)
}

// ledger returns the ids of the rows by micro-batch of a step, as the run noted them.
func ledger(t *testing.T, file string, number int64) (ids [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(text)) {
		var l struct {
			Step    int64
			Batches []struct{ Rows []string }
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		for _, b := range l.Batches {
			if l.Step == number {
				ids = append(ids, b.Rows)
			}
		}
	}
	return ids
}

// sameGradients fails unless the gradients of each player have the norm that the run noted.
func sameGradients(t *testing.T, about *step, whole, out string) {
	t.Helper()
	r, err := readMetrics(whole, about.Step-1, about.Step)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[bool]string{false: "grad_norm"} // the last player's
	if about.Players != nil {
		keys[true] = "grad_norm." + about.Players[0].Name
		if n := len(about.Players); n != 2 {
			t.Fatalf("%d players", n)
		}
		for i, p := range about.Players {
			norm, _ := r.lines[about.Step].number(keys[i == 0])
			if float64(p.GradNorm) != norm || norm == 0 {
				t.Errorf("step %d: %+v, the run has %v", about.Step, p, norm)
			}
		}
	}
	sums := gradientSums(t, filepath.Join(out, about.Gradients), func(name string) bool {
		return about.Players != nil && strings.HasPrefix(name, "text_encoder.")
	})
	for first, key := range keys {
		want, _ := r.lines[about.Step].number(key)
		if norm := math.Sqrt(sums[first]); math.IsNaN(norm/want) || math.Abs(norm/want-1) > 1e-5 {
			t.Errorf("step %d: the norm of the gradients is %v, %s of the run %v", about.Step, norm, key, want)
		}
	}
}

// gradientSums adds up the squares of gradients, of those of the first player and of the others.
func gradientSums(t *testing.T, file string, first func(name string) bool) map[bool]float64 {
	t.Helper()
	f, err := safetensors.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sums := map[bool]float64{}
	for _, info := range f.Tensors() {
		data := make([]byte, info.Bytes)
		if err := f.Read(info.Name, data); err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(data); at += 4 {
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[at:])))
			sums[first(info.Name)] += v * v
		}
	}
	return sums
}

// sameTensors fails unless a file has the bits of every tensor of another.
func sameTensors(t *testing.T, want, got string) {
	t.Helper()
	a, err := safetensors.Open(want)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := safetensors.Open(got)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, info := range a.Tensors() {
		other, ok := b.Tensor(info.Name)
		x, y := make([]byte, info.Bytes), make([]byte, info.Bytes)
		if !ok || other.Bytes != info.Bytes {
			t.Errorf("%s: no tensor %s as in %s", got, info.Name, want)
			continue
		}
		if err := a.Read(info.Name, x); err != nil {
			t.Fatal(err)
		}
		if err := b.Read(info.Name, y); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s: %s is not that of %s", got, info.Name, want)
		}
	}
	if len(a.Tensors()) == 0 {
		t.Errorf("%s is empty", want)
	}
}

// TestDifference: a line of the run that is another is found, with its step and key, and the folder is written.
func TestDifference(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	makeRun(t, "--graph", pico, "--batch-size", "4", "--run-dir", dir, "--max-steps", "3")
	if err := os.RemoveAll(filepath.Join(dir, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "metrics.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines[1] = strings.Replace(lines[1], `"grad_norm":`, `"grad_norm":1`, 1)
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	_, err = again(t, dir, 3, out)
	const want = "the replay differs from the run: step 2 is the first one, its grad_norm was 1"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := os.Stat(filepath.Join(out, stepFile)); err != nil {
		t.Error(err)
	}
}

// TestLinesOfReplayedSteps: of a long run, the lines are kept that a replay compares with.
func TestLinesOfReplayedSteps(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for step := 1; step <= 100; step++ {
		fmt.Fprintf(&text, "{\"step\":%d,\"step_ms\":1000}\n", step)
	}
	if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := readMetrics(dir, 40, 43)
	if err != nil || len(r.lines) != 3 || r.lines[41] == nil || r.lines[43] == nil || r.last != 100 ||
		r.seconds() != 3*time.Second {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestDamagedLines: lines that cannot be read are left out, and their steps are not compared.
func TestDamagedLines(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("{\"step\":1}\n" + strings.Repeat("x", 3<<20) + "\n{\"step\":3}\n")
	r, err := readMetrics(dir, 0, 3)
	if err != nil || len(r.lines) != 2 || r.last != 3 || r.damaged(1) || !r.damaged(2) || r.damaged(3) ||
		r.problem != "metrics.jsonl:2 was left out: it has more than 256 KiB" {
		t.Errorf("%+v, %v", r, err)
	}
	write("{\"step\":1}\n{\"step\":3}\n")
	if r, err := readMetrics(dir, 0, 3); err != nil || r.damaged(2) {
		t.Errorf("a line that was not written is damaged: %+v, %v", r, err)
	}
	write("all\nof it\n")
	if _, err := readMetrics(dir, 0, 3); err == nil ||
		!strings.Contains(err.Error(), "metrics.jsonl:1 and 1 more line") {
		t.Errorf("nothing can be read: %v", err)
	}
}

// TestSpokenMeasures: a run that compares its evaluations by word errors is replayed without the recognizer, unless its
// learning rates depend on them.
func TestSpokenMeasures(t *testing.T) {
	for _, schedule := range []string{"constant", "plateau"} {
		set := settings(t, "--plugins", plugins, "--graph", pico, "--best-by", "spoken.wer", "--schedule",
			schedule)
		set.Silent = true
		p, err := plan.New(t.Context(), set, inventory.Open, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		err = (&past{run: "mine"}).fits(p)
		refused := err != nil && strings.Contains(err.Error(), "of mine depend on spoken.wer") && hint.Of(err) != ""
		if schedule == "plateau" && !refused || schedule == "constant" && err != nil {
			t.Errorf("%s: %v", schedule, err)
		}
	}
}
