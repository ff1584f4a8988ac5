package ortgraphs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Limits of the file sizes, in bytes: every start reads each file completely.
const (
	maxModel = 64 << 20  // graphs contain no weights: those of thousands of nodes have a few MiB
	maxOther = 256 << 20 // tokenizers have up to 30 MiB
	maxExtra = 16 << 20  // what weights may have in addition to the values of the parameters: their header
	maxParts = 1 << 30   // weights of an inference graph: a decoder to waveforms has about 100 MiB
)

// limit returns the maximum size of a file.
func (b *Bundle) limit(name string) float64 {
	switch {
	case b.isModel(name):
		return maxModel
	case ofInference(b.Manifest, name):
		return maxParts
	case name != WeightsFile:
		return maxOther
	}
	values := 0.0
	for _, shape := range b.Stored() {
		values += elements(shape) * float64(manifest.F32.Size())
	}
	return values + maxExtra
}

// isModel reports whether a file must be ONNX: a graph of the manifest, whatever it is named, or a file with that
// extension.
func (b *Bundle) isModel(name string) bool {
	return filepath.Ext(name) == ".onnx" ||
		slices.ContainsFunc(b.Manifest.Graphs, func(g manifest.Graph) bool { return g.File == name }) ||
		slices.ContainsFunc(b.Manifest.Inference, func(g manifest.InferenceGraph) bool { return g.File == name })
}

// check reads all files and returns all faults. It fills the summaries of the graphs.
func (b *Bundle) check(root *os.Root) []Fault {
	list := b.checkManifest()
	list = append(list, b.checkListing(root)...)
	for _, name := range slices.Sorted(maps.Keys(b.Manifest.Files)) {
		f := &faults{file: name}
		b.checkFile(name, f)
		list = append(list, f.list...)
	}
	return append(list, checkAllInference(b)...)
}

// checkManifest checks the references inside bundle.json.
func (b *Bundle) checkManifest() []Fault {
	m := b.Manifest
	f := &faults{file: ManifestFile}
	listed := func(place, file string) {
		if _, ok := m.Files[file]; !ok {
			f.add(place, "%s is not listed in files", file)
		}
	}
	listed("files", WeightsFile)
	if m.Tokenizer != nil {
		listed("tokenizer", m.Tokenizer.File)
	}
	for i, t := range m.Inputs {
		if t.Vocabulary != "" {
			listed(fmt.Sprintf("inputs[%d]", i), t.Vocabulary)
		}
	}
	for i, g := range m.Graphs {
		place := fmt.Sprintf("graphs[%d]", i)
		listed(place, g.File)
		same := func(o manifest.Graph) bool {
			return o.File == g.File || o.Kind == g.Kind && o.Precision == g.Precision && o.Player == g.Player
		}
		if j := slices.IndexFunc(m.Graphs, same); j < i {
			f.add(place, "graphs[%d] has the same file, or the same kind and precision%s", j, ofPlayer(g.Player))
		}
	}
	for i, g := range m.Inference {
		place := fmt.Sprintf("inference[%d]", i)
		listed(place, g.File)
		switch {
		case g.Weights == "":
			continue
		case g.Weights == WeightsFile:
			f.add(place, "%s has the parameters: a graph takes them by their names", WeightsFile)
		case b.isModel(g.Weights):
			f.add(place, "weights is %s, a graph: they are in a safetensors file", g.Weights)
		}
		listed(place, g.Weights)
	}
	for _, player := range m.InTurn() {
		if !slices.ContainsFunc(m.Graphs, func(g manifest.Graph) bool {
			return g.Kind == "train" && g.Player == player.Name
		}) {
			f.add("graphs", "none is of kind train%s", ofPlayer(player.Name))
		}
	}
	if _, ok := m.EvalGraph(); !ok && len(m.State) > 0 {
		f.add("state", "no graph is of kind eval: a training graph would use the statistics of each batch")
	}
	checkPrecisions(m, f)
	for i, c := range m.Cost {
		if c.Bucket >= len(m.Buckets) {
			f.add(fmt.Sprintf("cost[%d]", i), "bucket %d of %d", c.Bucket, len(m.Buckets))
		}
	}
	for i, c := range m.Baselines {
		if !slices.Contains(m.OutputMetrics(), c.Metric) {
			f.add(fmt.Sprintf("baselines[%d]", i), "metric.%s is not in outputs", c.Metric)
		}
		if !slices.ContainsFunc(m.Inputs, func(t manifest.TensorSpec) bool { return t.Name == c.Target }) {
			f.add(fmt.Sprintf("baselines[%d]", i), "%q is not in inputs", c.Target)
		}
	}
	return f.list
}

// checkPrecisions checks that bf16 parameters occur with a bf16 graph only, and that there is a graph for machines
// without bf16. A bf16 graph may cast every weight itself: those that it computes, such as those of a weight norm.
func checkPrecisions(m *manifest.Bundle, f *faults) {
	graph := slices.IndexFunc(m.Graphs, func(g manifest.Graph) bool { return g.Precision == string(manifest.BF16) })
	parameter := slices.IndexFunc(m.Parameters, func(p manifest.Parameter) bool { return p.Compute == manifest.BF16 })
	if parameter >= 0 && graph < 0 {
		f.add(fmt.Sprintf("parameters[%d]", parameter), "%q has compute bf16, but no graph has precision bf16",
			m.Parameters[parameter].Name)
	}
	if graph < 0 {
		return
	}
	for _, player := range m.InTurn() {
		for _, precision := range []manifest.DType{manifest.F32, manifest.BF16} {
			if _, ok := m.TrainingGraph(player.Name, precision); !ok {
				f.add(fmt.Sprintf("graphs[%d]", graph), "precision is bf16, but no training graph%s has precision %s",
					ofPlayer(player.Name), precision)
			}
		}
	}
}

// ofPlayer is the addition to a message for a player; a bundle without players has one without a name.
func ofPlayer(player string) string {
	if player == "" {
		return ""
	}
	return " of player " + player
}

// checkListing finds files in the folder that are not listed.
func (b *Bundle) checkListing(root *os.Root) []Fault {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return []Fault{{File: ".", Reason: err.Error()}}
	}
	var list []Fault
	for _, e := range entries {
		if _, ok := b.Manifest.Files[e.Name()]; !ok && e.Name() != ManifestFile && !noContent(e) {
			list = append(list, Fault{File: e.Name(), Reason: "not listed in files of " + ManifestFile})
		}
	}
	return list
}

// checkFile verifies the SHA-256 of a file. If it matches, it checks the content. The file may be a link that leaves
// the folder: its content is the one that the manifest names.
func (b *Bundle) checkFile(name string, f *faults) {
	file, err := files.Open(b.Path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason, advice := absent(b.Dir, name)
		f.advise(cmp.Or(reason, "missing, but listed in files of "+ManifestFile), advice)
		return
	case errors.Is(err, files.ErrNotRegular):
		f.add("", "not a regular file")
		return
	case err != nil:
		f.cannotRead(b, err)
		return
	}
	defer file.Close()
	size := file.Size()
	if limit := b.limit(name); float64(size) > limit {
		f.add("", "%d bytes, more than the limit of %.0f for this file", size, limit)
		return
	}
	hash := sha256.New()
	var model bytes.Buffer
	content := io.Writer(hash)
	if b.isModel(name) {
		model.Grow(int(size))
		content = io.MultiWriter(hash, &model)
	}
	if _, err := io.Copy(content, io.LimitReader(file, size)); err != nil {
		f.cannotRead(b, err)
		return
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); sum != b.Manifest.Files[name] {
		if reason, advice := pointer(b.Dir, file); reason != "" {
			f.advise(reason, advice)
			return
		}
		f.add("", "its SHA-256 is %.12s..., %s says %.12s...", sum, ManifestFile, b.Manifest.Files[name])
		return
	}
	switch {
	case b.isModel(name):
		b.checkModel(name, model.Bytes(), f)
	case name == WeightsFile:
		b.checkWeights(file, size, f)
	case ofInference(b.Manifest, name):
		readFrozen(b, name, file, size, f)
	}
}

// cannotRead adds a fault of a file, or keeps one of the machine, which says nothing about the bundle.
func (f *faults) cannotRead(b *Bundle, err error) {
	if files.OfMachine(err) {
		b.unread = errors.Join(b.unread, err)
		return
	}
	f.add("", "%v", err)
}

// checkModel checks an ONNX file: every file for portability, the graphs also for their contract.
func (b *Bundle) checkModel(name string, data []byte, f *faults) {
	model, err := parseModel(data)
	if err != nil {
		f.add("model", "%v", err)
		return
	}
	checkPortable(model, b.Manifest.Files, f)
	for _, g := range b.Manifest.Graphs {
		if g.File == name {
			b.models[name] = model
			checkContract(b.Manifest, g, model.Graph, f)
			if g.Precision == string(manifest.BF16) {
				b.widened = append(b.widened, widened(model.Graph)...)
				if !usesBF16(b.Manifest.Parameters, model) {
					f.add("graph", "precision is bf16, but no parameter, input or result of a Cast is")
				}
			}
			checkNodes(g, model, f)
			b.graphs = append(b.graphs, summarize(g, model, len(data)))
		}
	}
	if slices.ContainsFunc(b.Manifest.Inference, func(g manifest.InferenceGraph) bool { return g.File == name }) {
		b.models[name] = model
	}
}

// checkNodes compares the numbers of nodes with those in bundle.json, if it has any.
func checkNodes(g manifest.Graph, model *onnxpb.ModelProto, f *faults) {
	if g.Nodes == nil {
		return
	}
	ops := modelOps(model)
	both := maps.Clone(ops)
	maps.Copy(both, g.Nodes)
	for _, op := range slices.Sorted(maps.Keys(both)) {
		if ops[op] != g.Nodes[op] {
			f.add("nodes", "%d of %s, %s says %d", ops[op], op, ManifestFile, g.Nodes[op])
		}
	}
}

// Stored returns the shapes of the tensors in the file of weights, and in those of checkpoints, by name: parameters and
// state.
func (b *Bundle) Stored() map[string][]int {
	shapes := map[string][]int{}
	for _, p := range b.Manifest.Parameters {
		shapes[p.Name] = p.Shape
	}
	for _, s := range b.Manifest.State {
		shapes[s.Name] = s.Shape
	}
	return shapes
}

// checkWeights checks that the weights are exactly the parameters and the state.
func (b *Bundle) checkWeights(file io.ReaderAt, size int64, f *faults) {
	weights, err := safetensors.NewReader(file, size)
	if err != nil {
		f.add("header", "%v", err)
		return
	}
	stored := b.Stored()
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		place := fmt.Sprintf("tensor %q", name)
		t, ok := weights.Tensor(name)
		switch {
		case !ok:
			f.add(place, "missing")
		case t.DType != safetensors.F32:
			f.add(place, "is %s, must be F32", t.DType)
		case !slices.Equal(t.Shape, stored[name]):
			f.add(place, "has shape %s, %s says %s", fixed(t.Shape), ManifestFile, fixed(stored[name]))
		}
	}
	for _, t := range weights.Tensors() {
		if _, ok := stored[t.Name]; !ok {
			f.add(fmt.Sprintf("tensor %q", t.Name), "is neither a parameter nor state in %s", ManifestFile)
		}
	}
}
