package run

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/ranks/launch"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
)

// rankTest is a run of several ranks in this process.
type rankTest struct {
	size  int
	dir   string // of the run
	flags []string
	own   func(rank int) []string // flags of a rank
	stop  map[int]<-chan struct{} // by rank
	out   io.Writer               // of rank 0; nil for none, as err
	err   io.Writer
	on    func(rank int) string // the name of a rank's machine; nil for one machine
}

// train runs all ranks and returns their errors.
func (r rankTest) train(t *testing.T) []error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, errs := l.Addr().String(), make([]error, r.size)
	l.Close()
	var all sync.WaitGroup
	for rank := range r.size {
		args := append([]string{
			"--plugins", plugins, "--train-data", clips, "--buffer-size", "6", "--threads", "1", "--spoken-clips", "0",
		}, r.flags...)
		if r.own != nil {
			args = append(args, r.own(rank)...)
		}
		set := config.New()
		if err := set.Parse(args, []string{"XTTS_HOST_DEVICE=cpu"}); err != nil {
			t.Fatal(err)
		}
		out, said, machine := r.out, r.err, ""
		if out == nil {
			out = io.Discard
		}
		if said == nil {
			said = io.Discard
		}
		if r.on != nil {
			machine = r.on(rank)
		}
		all.Go(func() {
			errs[rank] = TrainAs(t.Context(), set,
				console.Console{Out: out, Err: said, Stop: r.stop[rank]}, launch.Found{
					World: world.World{Rank: rank, Size: r.size, Local: rank, LocalSize: r.size}, By: "a test",
					Address: address, Secret: "the secret of a test", MachineName: machine,
				})
		})
	}
	all.Wait()
	return errs
}

// mustTrain fails the test if a rank fails.
func (r rankTest) mustTrain(t *testing.T) string {
	t.Helper()
	for rank, err := range r.train(t) {
		if err != nil {
			t.Fatalf("rank %d of %d: %v", rank, r.size, err)
		}
	}
	return r.dir
}

// dry is pico without dropout, which depends on the places of rows.
func dry(t *testing.T) string { return bundletest.WithoutDropout(t, pico).Dir }

// numbersOf reads the numbers of a file of lines by name, without times.
func numbersOf(t *testing.T, file string) (all []map[string]float64) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		numbers := map[string]float64{}
		for name, value := range v {
			if n, ok := value.(float64); ok && !strings.Contains(name, "_ms") {
				numbers[name] = n
			}
		}
		all = append(all, numbers)
	}
	return all
}

// near fails unless two files of lines have the same numbers, up to a relative difference.
func near(t *testing.T, what, a, b string, bound float64) {
	t.Helper()
	x, y := numbersOf(t, a), numbersOf(t, b)
	if len(x) != len(y) || len(x) == 0 {
		t.Fatalf("%s: %d and %d lines", what, len(x), len(y))
	}
	worst := 0.0
	for i := range x {
		for name, v := range x[i] {
			if d := math.Abs(v - y[i][name]); d > bound*math.Max(math.Abs(v), 1e-3) {
				t.Errorf("%s: line %d: %s is %v and %v", what, i+1, name, v, y[i][name])
			} else if v != 0 {
				worst = max(worst, d/math.Abs(v))
			}
		}
	}
	t.Logf("%s: %d lines, largest relative difference %.2g", what, len(x), worst)
}

// TestRanksAreOneRun: runs of 1, 2 and 4 ranks with the same product of ranks and rows have the same losses,
// evaluations and counts, within roundings; all ranks of one run have the same bits.
func TestRanksAreOneRun(t *testing.T) {
	graph, root := dry(t), t.TempDir()
	var dirs []string
	for _, size := range []int{1, 2, 4} {
		dirs = append(dirs, rankTest{size: size, dir: filepath.Join(root, fmt.Sprint(size)), flags: []string{
			"--graph", graph, "--batch-size", fmt.Sprint(4 / size), "--max-steps", "7", "--eval-every", "3",
			"--run-dir", filepath.Join(root, fmt.Sprint(size)), "--schedule", "plateau", "--plateau-patience", "1",
			"--probe", "gradient/decoder*",
		}}.mustTrain(t))
	}
	for _, dir := range dirs[1:] {
		near(t, dir, filepath.Join(dirs[0], rundir.ProbesFile), filepath.Join(dir, rundir.ProbesFile), 2e-4)
		for _, file := range []string{rundir.MetricsFile, rundir.EvalFile} {
			near(t, dir, filepath.Join(dirs[0], file), filepath.Join(dir, file), 2e-6)
		}
		for _, file := range []string{rundir.MetricsFile, rundir.EvalFile} {
			near(t, dir+" rank 1", filepath.Join(dir, file), filepath.Join(dir, rundir.RanksFolder, "1", file), 0)
		}
	}
	one, four := readReport(t, dirs[0]), readReport(t, dirs[2])
	if len(one.Ranks) != 0 || len(four.Ranks) != 4 || four.Ranks[3].Rank != 3 || four.Ranks[3].OwnMs <= 0 ||
		four.Ranks[3].OwnMs > four.Ranks[3].StepMs {
		t.Errorf("ranks of the report: %+v and %+v", one.Ranks, four.Ranks)
	}
	if one.Samples != four.Samples || one.Frames != four.Frames || one.Samples == 0 {
		t.Errorf("1 rank: %d samples, %d frames; 4 ranks: %d, %d", one.Samples, one.Frames, four.Samples, four.Frames)
	}
	for rank, dir := range map[int]string{0: dirs[1], 1: rundir.RankFolder(dirs[1], 1)} {
		table, err := os.ReadFile(filepath.Join(dir, rundir.TableFile))
		if p := readReport(t, dir).Process; p == nil || p.Rank != rank || p.Of != 2 || err != nil ||
			!strings.Contains(string(table), fmt.Sprintf(", rank %d of 2: done after ", rank)) {
			t.Errorf("the report of rank %d is of %+v: %s, %v", rank, p, table, err)
		}
	}
	if one.Process != nil {
		t.Errorf("the report of a run of one process is of %+v", one.Process)
	}
	if entries, err := os.ReadDir(filepath.Join(dirs[1], rundir.RanksFolder, "1")); err != nil ||
		slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "checkpoints" }) {
		t.Errorf("rank 1 has written %v, %v", entries, err)
	}
}

// TestRanksGoOnAsOthers: a checkpoint of two ranks is resumed by one or by four of the same product, and refused for
// another product.
func TestRanksGoOnAsOthers(t *testing.T) {
	graph, dir := dry(t), filepath.Join(t.TempDir(), "run")
	flags := []string{"--graph", graph, "--eval-every", "4"}
	rankTest{
		size: 2, flags: append(flags, "--batch-size", "2", "--max-steps", "3", "--run-dir", dir),
	}.mustTrain(t)
	whole := rankTest{
		size: 2, dir: filepath.Join(t.TempDir(), "whole"),
		flags: append(flags, "--batch-size", "2", "--max-steps", "8", "--run-dir", filepath.Join(t.TempDir(), "whole")),
	}
	whole.dir = whole.flags[len(whole.flags)-1]
	whole.mustTrain(t)
	for size, rows := range map[int]string{1: "4", 2: "2", 4: "1"} {
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		rankTest{size: size, flags: []string{
			"--resume", copied, "--batch-size", rows, "--max-steps", "8", "--allow", "schedule",
		}}.mustTrain(t)
		bound := 1e-5
		if size == 2 {
			bound = 0
		}
		near(t, fmt.Sprintf("resumed by %d", size), filepath.Join(whole.dir, rundir.MetricsFile),
			filepath.Join(copied, rundir.MetricsFile), bound)
	}
	for _, err := range (rankTest{size: 2, flags: []string{"--resume", dir, "--batch-size", "4"}}).train(t) {
		if exit.Code(err) != exit.StatusRefused || !strings.Contains(err.Error(), "batch-size: 4 -> 8") ||
			!strings.HasPrefix(exit.Hint(err), "give --batch-size 2, ") {
			t.Errorf("another product: %v; %s", err, exit.Hint(err))
		}
	}
}

// TestRanksDiffer: ranks that were not started alike are refused with what differs, and leave nothing behind.
func TestRanksDiffer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for _, c := range []struct{ flags, want []string }{
		{[]string{"--lr", "0.5", "--max-steps", "9"}, []string{"lr is 0.5, not ", "--max-steps is 9, not 0"}},
		{[]string{"--run-dir", dir + "2"}, []string{"run folder is " + dir + "2, not " + dir}},
	} {
		errs := rankTest{size: 3, flags: []string{"--graph", pico, "--batch-size", "2", "--run-dir", dir},
			own: func(rank int) []string {
				if rank == 2 {
					return c.flags
				}
				return nil
			}}.train(t)
		for rank, err := range errs {
			for _, want := range append(c.want, "rank 2 differs from rank 0: ") {
				if exit.Code(err) != exit.StatusRefused || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, rank %d: %v", c.flags, rank, err)
				}
			}
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("the run folder is there: %v", err)
		}
	}
}

// TestRanksStopTogether: a stop of any rank ends all after the same step, with a checkpoint from which they go on.
func TestRanksStopTogether(t *testing.T) {
	for asked := range 2 {
		dir, stop := filepath.Join(t.TempDir(), "run"), make(chan struct{})
		errs := rankTest{
			size: 2, flags: []string{"--graph", pico, "--batch-size", "2", "--run-dir", dir, "--log-every", "1"},
			stop: map[int]<-chan struct{}{asked: stop}, out: &stopAfter{lines: 3, stop: stop},
		}.train(t)
		var steps []int
		for rank, err := range errs {
			want := "interrupted"
			if rank != asked {
				want = fmt.Sprintf("interrupted: rank %d was asked to stop", asked)
			}
			if exit.Code(err) != exit.StatusInterrupted || err.Error() != want {
				t.Errorf("rank %d asks, rank %d: %v", asked, rank, err)
			}
			own := dir
			if rank > 0 {
				own = filepath.Join(dir, rundir.RanksFolder, fmt.Sprint(rank))
			}
			steps = append(steps, len(numbersOf(t, filepath.Join(own, rundir.MetricsFile))))
		}
		if steps[0] != steps[1] || steps[0] == 0 {
			t.Errorf("rank %d asks: the ranks have made %v steps", asked, steps)
		}
		rankTest{size: 2, flags: []string{
			"--resume", dir, "--max-steps", fmt.Sprint(steps[0] + 2),
		}}.mustTrain(t)
	}
}

// TestRankFails: what one rank fails of ends all of them, with its reason. Rank 0, which fails before the first step,
// removes the run folder; the other then does not fail of that.
func TestRankFails(t *testing.T) {
	debug := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(debug, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for fails := range 2 {
		errs := rankTest{
			size: 2, flags: []string{
				"--graph", pico, "--batch-size", "2", "--run-dir", filepath.Join(t.TempDir(), "run"),
				"--max-steps", "4",
			},
			own: func(rank int) []string {
				if rank == fails {
					return []string{"--debug-dir", debug}
				}
				return nil
			},
		}.train(t)
		other := errs[1-fails]
		if want := fmt.Sprintf("rank %d failed: ", fails); exit.Code(other) != exit.StatusRank ||
			!strings.Contains(other.Error(), want) || !strings.Contains(other.Error(), debug) {
			t.Errorf("rank %d fails; rank %d: %v", fails, 1-fails, other)
		}
		if exit.Code(errs[fails]) != exit.StatusRefused {
			t.Errorf("rank %d: %v", fails, errs[fails])
		}
	}
}

// TestUnusableClipsOfRanks: rank 0 lists the clips that any rank cannot use, and so does the checkpoint.
func TestUnusableClipsOfRanks(t *testing.T) {
	sample, err := dataset.Sample(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clips, err := filepath.Glob(filepath.Join(sample, "wavs", "A", "*.wav"))
	if err != nil || len(clips) < 8 {
		t.Fatalf("%d clips, %v", len(clips), err)
	}
	var once sync.Once
	tear := writer(func([]byte) { // when the banner comes, all ranks have read the headers
		once.Do(func() {
			for _, clip := range clips[:8] {
				if err := os.Truncate(clip, 20000); err != nil {
					t.Error(err)
				}
			}
		})
	})
	dir := filepath.Join(t.TempDir(), "run")
	rankTest{size: 2, dir: dir, out: tear, flags: []string{
		"--graph", pico, "--batch-size", "2", "--run-dir", dir, "--train-data", sample, "--max-steps", "14",
		"--max-quarantine", "20", "--model-start-delay", "0", "--checkpoint-every", "1",
	}}.mustTrain(t)
	last, _, err := checkpoint.NewStore(dir).Latest()
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	excluded, err := os.ReadFile(filepath.Join(dir, rundir.ExcludedFile)) // they are references of others alone
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(filepath.Join(dir, rundir.RanksFolder, "1", rundir.QuarantineFile))
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(filepath.Join(dir, rundir.QuarantineFile))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(own)) {
		var q report.Quarantined
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		if q.Stage == "decode" {
			found++
		}
		if !strings.Contains(string(all), q.ID) {
			t.Errorf("rank 0 does not list %s", q.ID)
		}
		if _, listed := last.State.Reasons()[q.ID]; !listed && q.Split == report.Train &&
			!strings.Contains(string(excluded), q.ID) {
			t.Errorf("the last checkpoint, of the third epoch, does not list %s", q.ID)
		}
	}
	if found == 0 {
		t.Error("rank 1 has found no clip")
	}
}
