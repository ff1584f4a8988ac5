package run

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/run/nans"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// debugBatch is a micro-batch as --debug-dir has it: the frames and the ids of its rows.
type debugBatch struct {
	frames []uint32
	ids    []string
}

// debugged makes a run and returns its batches by step, counted from 0, and micro-batch.
func debugged(t *testing.T, flags ...string) (steps [][]debugBatch) {
	t.Helper()
	dir := t.TempDir()
	batches := filepath.Join(dir, "batches")
	if err := os.Mkdir(batches, 0o777); err != nil {
		t.Fatal(err)
	}
	mustTrain(t, append(slices.Clone(flags), "--debug-dir", dir)...)
	return ledger(t, dir)
}

// ledger returns the batches of a process by step and micro-batch.
func ledger(t *testing.T, dir string) (steps [][]debugBatch) {
	t.Helper()
	batches := filepath.Join(dir, "batches")
	text, err := os.ReadFile(filepath.Join(dir, "ledger.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Step    int
			Batches []struct{ Rows []string }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		var all []debugBatch
		for i, b := range l.Batches {
			f, err := safetensors.Open(filepath.Join(batches, fmt.Sprintf("%06d-%02d.safetensors", l.Step, i)))
			if err != nil {
				t.Fatal(err)
			}
			data := make([]byte, 4*len(b.Rows))
			if err := f.Read("mel_lengths", data); err != nil {
				t.Fatal(err)
			}
			f.Close()
			one := debugBatch{ids: b.Rows}
			for at := 0; at < len(data); at += 4 {
				one.frames = append(one.frames, binary.LittleEndian.Uint32(data[at:]))
			}
			all = append(all, one)
		}
		steps = append(steps, all)
	}
	return steps
}

// sick returns pico with a logarithm that is of a negative number for rows of so many frames, before the first block of
// the decoder.
func sick(t *testing.T, frames uint32) string {
	t.Helper()
	return rewritten(t, func(g *onnxpb.GraphProto) { plantLog(g, float32(frames)) })
}

// rewritten returns pico with a training graph that is changed.
func rewritten(t *testing.T, change func(*onnxpb.GraphProto)) string {
	t.Helper()
	return bundletest.Rewrite(t, pico, func(dir string, m *manifest.Bundle) {
		path := filepath.Join(dir, "training_model.onnx")
		model, err := ortgraphs.ReadModel(path)
		if err != nil {
			t.Fatal(err)
		}
		change(model.Graph)
		data, err := proto.Marshal(model)
		if err == nil {
			err = os.WriteFile(path, data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Graphs {
			m.Graphs[i].Nodes = nil
		}
	}).Dir
}

func plantLog(g *onnxpb.GraphProto, frames float32) {
	node := func(op, out string, in ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}}
	}
	number := func(name string, v float32) string {
		g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
			Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{v},
		})
		return name
	}
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: proto.String("sick.axes"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{2},
		Int64Data: []int64{1, 2},
	})
	cast := node("Cast", "sick.length", "mel_lengths")
	cast.Attribute = []*onnxpb.AttributeProto{{
		Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(),
		I: proto.Int64(int64(onnxpb.TensorProto_FLOAT)),
	}}
	const before = "add_19"
	at := slices.IndexFunc(g.Node, func(n *onnxpb.NodeProto) bool { return slices.Contains(n.Output, before) })
	for _, n := range g.Node[at+1:] {
		for i := range n.Input {
			if n.Input[i] == before {
				n.Input[i] = "sick.sum"
			}
		}
	}
	log := node("Log", "sick.log", "sick.less")
	log.MetadataProps = []*onnxpb.StringStringEntryProto{
		{Key: proto.String("line"), Value: proto.String("model.py:88")},
	}
	g.Node = slices.Insert(g.Node, at+1, cast,
		node("Sub", "sick.difference", "sick.length", number("sick.frames", frames)),
		node("Abs", "sick.distance", "sick.difference"),
		node("Sub", "sick.less", "sick.distance", number("sick.half", 0.5)), log,
		node("Mul", "sick.zero", "sick.log", number("sick.0", 0)),
		node("Unsqueeze", "sick.row", "sick.zero", "sick.axes"), node("Add", "sick.sum", before, "sick.row"))
}

// first finds the number of frames that a row of a step, counted from 0, has, and no row of a step before.
func first(t *testing.T, steps [][]debugBatch, step int) uint32 {
	t.Helper()
	seen := map[uint32]bool{}
	for i, s := range steps[:step+1] {
		for _, b := range s {
			for _, n := range b.frames {
				if i == step && n > 0 && !seen[n] {
					return n
				}
				seen[n] = seen[n] || i < step
			}
		}
	}
	t.Fatalf("all lengths of step %d were there before", step+1)
	return 0
}

// TestNaNIsTraced: the operation, the line, the micro-batch, the rows and the clips of a step that is not finite are
// named, the run has the same bits without that, and a resumed run has no file of a step that it makes again.
func TestNaNIsTraced(t *testing.T) {
	flags := []string{
		"--max-steps", "5", "--accumulate", "2", "--checkpoint-every", "1", "--max-skipped", "100", "--batch-size", "2",
		"--schedule", "constant", "--keep-last", "0",
	}
	steps := debugged(t, flags...)
	const at = 2 // the third step
	frames := first(t, steps, at)
	graph := sick(t, frames)
	var said bytes.Buffer
	dir, err := trainPico(t, console.Console{Err: &said}, append([]string{"--graph", graph}, flags...)...)
	if err != nil {
		t.Logf("%v", err) // more than half of the steps may be skipped
	}
	var want []string
	micro, rows := 0, []int(nil)
	for i, b := range steps[at] {
		for row, n := range b.frames {
			if n == frames && (rows == nil || micro == i) {
				micro, rows, want = i, append(rows, row), append(want, b.ids[row])
			}
		}
	}
	text, found, ids := readTrace(t, dir, at+1, &said)
	o := found.Operation
	if o == nil || o.Operator != "Log" || o.Value != "sick.log" || o.Line != "model.py:88" || o.Pass != "forward" ||
		found.Micro != micro || !slices.Equal(found.Rows, rows) || !slices.Equal(ids, want) || found.Step != at+1 {
		t.Errorf("%s\nwant micro-batch %d, rows %v, clips %v", text, micro, rows, want)
	}
	line := fmt.Sprintf("step %d is not finite: Log (sick.log, model.py:88) returns NaN (%s) in the forward pass, "+
		"near decoder.blocks.0.attention_norm.bias; its input is -0.500; clip", at+1, units.Count(len(rows), "element"))
	if !strings.Contains(said.String(), line) || !strings.Contains(said.String(), want[0]) ||
		!strings.Contains(said.String(), fmt.Sprintf("xtts-host replay %s --step %d", dir, at+1)) {
		t.Errorf("no %q in\n%s", line, &said)
	}

	without, _ := trainPico(t, console.Console{}, append([]string{"--graph", graph, "--trace-nan=false"}, flags...)...)
	sameRun(t, "without a trace", without, dir)
	if _, err := os.Stat(filepath.Join(without, rundir.NaNFile(at+1))); !os.IsNotExist(err) {
		t.Errorf("a trace with --trace-nan=false: %v", err)
	}
	if err := runFlags(t, console.Console{}, "--resume", dir+"@2", "--max-steps", "2"); err != nil {
		t.Fatal(err)
	}
	if err := runFlags(t, console.Console{}, "--resume", dir, "--max-steps", "3", "--trace-nan=false"); err == nil {
		t.Error("a process that skipped its only step is done")
	}
	if _, err := os.Stat(filepath.Join(dir, rundir.NaNFile(at+1))); !os.IsNotExist(err) {
		t.Errorf("the trace of a step that is made again: %v", err)
	}
}

// TestNaNOfRank: the line of a step, the warning and the report name the rank whose rows are not finite, and these rows
// and clips, whichever rank it is.
func TestNaNOfRank(t *testing.T) {
	root := t.TempDir()
	debug := func(rank int) string { return filepath.Join(root, fmt.Sprint("debug", rank)) }
	for rank := range 2 {
		if err := os.MkdirAll(filepath.Join(debug(rank), "batches"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	sample, err := dataset.Sample(filepath.Join(root, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--train-data", sample, "--batch-size", "2", "--max-steps", "2", "--schedule", "constant"}
	rankTest{
		size: 2, flags: append(flags, "--graph", pico, "--run-dir", filepath.Join(root, "well")),
		own: func(rank int) []string { return []string{"--debug-dir", debug(rank)} },
	}.mustTrain(t)
	const at = 1 // the second step
	ledgers := [][][]debugBatch{ledger(t, debug(0)), ledger(t, debug(1))}
	for bad := range 2 {
		both := slices.Clone(ledgers[1-bad])
		for i := range both { // what the other rank has in this step, too, does not serve
			both[i] = slices.Concat(both[i], ledgers[bad][i])
		}
		both[at-1], both[at] = slices.Concat(both[at-1], ledgers[1-bad][at]), ledgers[bad][at]
		frames := first(t, both, at)
		var want []string
		for row, n := range both[at][0].frames {
			if n == frames {
				want = append(want, both[at][0].ids[row])
			}
		}
		dir := filepath.Join(root, fmt.Sprint("sick", bad))
		var said, out bytes.Buffer
		rankTest{
			size: 2, flags: append(flags, "--graph", sick(t, frames), "--run-dir", dir), out: &out, err: &said,
		}.mustTrain(t)
		text, found, ids := readTrace(t, dir, at+1, &said)
		if found.Rank != bad || found.Ranks != 2 || found.Operation == nil || !slices.Equal(ids, want) {
			t.Errorf("rank %d is not finite: %s\nwant the clips %v", bad, text, want)
		}
		line := fmt.Sprintf("step %d is not finite on rank %d: Log (sick.log", at+1, bad)
		if got := strings.Join(readReport(t, dir).Warnings, "\n"); !strings.Contains(got, line) ||
			!strings.Contains(got, want[0]+" (row ") {
			t.Errorf("no %q in the report: %s", line, got)
		}
		if got := out.String() + said.String(); !strings.Contains(got, fmt.Sprintf(
			"the loss is not finite (NaN); rows %s of rank %d", strings.Join(both[at][0].ids, ", "), bad)) {
			t.Errorf("the line of the step does not name the rows of rank %d:\n%s", bad, got)
		}
		if _, err := os.Stat(filepath.Join(rundir.RankFolder(dir, 1), rundir.NaNFile(at+1))); !os.IsNotExist(err) {
			t.Errorf("rank 1 has a file of its own: %v", err)
		}
	}
}

// TestNaNIsNowhere: of a step whose gradients are finite, and the sum of their squares is not, the trace says that, and
// names the clips of the whole batch. It tries all micro-batches.
func TestNaNIsNowhere(t *testing.T) {
	graph := rewritten(t, func(g *onnxpb.GraphProto) {
		const gradient = "grad.mel_head.bias"
		for _, n := range g.Node {
			for i := range n.Output {
				if n.Output[i] == gradient {
					n.Output[i] = "sick.before"
				}
			}
		}
		g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
			Name: proto.String("sick.huge"), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
			FloatData: []float32{1e30},
		})
		g.Node = append(g.Node, &onnxpb.NodeProto{
			OpType: proto.String("Mul"), Input: []string{"sick.before", "sick.huge"}, Output: []string{gradient},
		})
	})
	var said bytes.Buffer
	dir, err := trainPico(t, console.Console{Err: &said}, "--graph", graph, "--max-steps", "1", "--accumulate", "2",
		"--batch-size", "2")
	text, readErr := os.ReadFile(filepath.Join(dir, rundir.NaNFile(1)))
	if readErr != nil {
		t.Fatalf("%v\n%v\n%s", readErr, err, &said)
	}
	var found nans.Trace
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	if found.Where != "nowhere" || found.OutputsBad != 0 || found.Micro != 1 || len(found.Clips) == 0 {
		t.Errorf("%s", text)
	}
	const line = "the exported graph returns finite numbers on the CPU in f32, so the sum of squares of the gradients"
	if !strings.Contains(said.String(), line) {
		t.Errorf("no %q in\n%s", line, &said)
	}
}

// readTrace reads what a run has found about a step, with the ids of its clips. said is what the run has said.
func readTrace(t *testing.T, dir string, step int64, said fmt.Stringer) (text []byte, found nans.Trace, ids []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, rundir.NaNFile(step)))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Clips {
		ids = append(ids, c.ID)
	}
	return text, found, ids
}
