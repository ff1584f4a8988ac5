package ortgraphs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The files of a bundle that have fixed names.
const (
	ManifestFile = "bundle.json"
	WeightsFile  = "params.safetensors"
)

// maxManifest bounds the size of bundle.json, in bytes. A parameter takes about 100 of them, so this is enough for
// 10000.
const maxManifest = 1 << 20

// builtinPrefix marks the name of an embedded bundle.
const builtinPrefix = "builtin:"

// IsBuiltin reports whether the text that names a bundle names an embedded one.
func IsBuiltin(spec string) bool { return strings.HasPrefix(spec, builtinPrefix) }

// Bundle is a folder that was checked against its bundle.json. It is immutable and safe for concurrent use.
type Bundle struct {
	// Dir is the absolute path of the folder.
	Dir string
	// Manifest is the content of bundle.json.
	Manifest *manifest.Bundle

	graphs []GraphSummary
	// unread is why a file could not be read, if that is no fault of the bundle.
	unread error
	// frozen are the tensors of the weights of inference graphs, by file.
	frozen map[string][]safetensors.Info
	// models are the graphs, by file.
	models map[string]*onnxpb.ModelProto
	// widened names the parameters that a bf16 graph takes in bf16, and gives the gradients of in f32.
	widened []string
}

// Open loads the bundle of a --graph value: "builtin:NAME" or a folder. cacheDir is as in Builtin.
func Open(spec, cacheDir string) (*Bundle, error) {
	if name, ok := strings.CutPrefix(spec, builtinPrefix); ok {
		return Builtin(name, cacheDir)
	}
	b, err := Load(spec)
	if errors.Is(err, fs.ErrNotExist) && slices.Contains(Builtins(), spec) {
		return nil, hint.Errorf("the bundle of that name in the program is "+builtinPrefix+spec, "%w", err)
	}
	return b, err
}

// Load reads and checks a bundle. It reads every file once to verify its SHA-256. The error is an *InvalidError if the
// folder is not a valid bundle, and an fs.ErrNotExist if it has no bundle.json.
func Load(dir string) (*Bundle, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, notABundle(err)
	}
	defer root.Close()
	// The manifest may be a link, as all files may: whoever keeps bundles in a store has links to it.
	data, err := files.Read(filepath.Join(dir, ManifestFile), maxManifest)
	if reason, advice := absent(dir, ManifestFile); errors.Is(err, fs.ErrNotExist) && reason != "" {
		return nil, hint.Errorf(advice, "bundle: %s: %s", filepath.Join(dir, ManifestFile), reason)
	}
	if err != nil {
		return nil, notABundle(err)
	}
	m, err := manifest.ParseBundle(filepath.Join(dir, ManifestFile), data)
	if reason, advice := pointer(dir, bytes.NewReader(data)); reason != "" {
		return nil, hint.Errorf(advice, "bundle: %s: %s", filepath.Join(dir, ManifestFile), reason)
	}
	if err != nil {
		return nil, hint.Errorf("docs/bundle.md specifies "+ManifestFile+"; correct it, or export the bundle again",
			"bundle: %w", err)
	}
	b := &Bundle{
		Dir: dir, Manifest: m, models: map[string]*onnxpb.ModelProto{}, frozen: map[string][]safetensors.Info{},
	}
	list := b.check(root)
	if b.unread != nil {
		return nil, fmt.Errorf("bundle %s: %w", dir, b.unread)
	}
	if len(list) > 0 {
		return nil, &InvalidError{Dir: dir, Faults: list}
	}
	return b, nil
}

func notABundle(err error) error {
	if files.OfMachine(err) {
		return fmt.Errorf("bundle: %w", err)
	}
	return hint.Errorf(
		"a bundle is a folder with a bundle.json, or "+builtinPrefix+strings.Join(Builtins(), " or "+builtinPrefix),
		"bundle: %w", err)
}

// Path returns the absolute path of one of the bundle's files.
func (b *Bundle) Path(file string) string { return filepath.Join(b.Dir, file) }

// Model returns the graph of that file as Load read and checked it. No one may change it.
func (b *Bundle) Model(file string) *onnxpb.ModelProto { return b.models[file] }

// Weights opens the initial weights. The caller closes them.
func (b *Bundle) Weights() (*safetensors.File, error) { return safetensors.Open(b.Path(WeightsFile)) }

// Hash identifies everything that determines the numbers of a run with the bundle: the content of its files, and the
// parts of bundle.json that determine the inputs of the graphs. It does not include names, texts, counts and costs, the
// graphs with which the model speaks, probes, and the defaults that a run may override and records itself: features,
// pipeline, optimizers, schedule. It is a hex SHA-256.
func (b *Bundle) Hash() string {
	m := b.Manifest
	parameters := slices.Clone(m.Parameters)
	for i := range parameters {
		parameters[i].Aliases = nil
	}
	files := maps.Clone(m.Files)
	var graphs []manifest.Graph
	for _, g := range m.Graphs {
		if g.Kind == "probe" {
			delete(files, g.File)
			continue
		}
		g.Nodes = nil
		graphs = append(graphs, g)
	}
	var players []string // their order
	for _, p := range m.Players {
		players = append(players, p.Name)
	}
	var stages []manifest.InferenceGraph
	for _, g := range m.Inference {
		if g.Kind == manifest.InferenceStage {
			stages = append(stages, g)
			continue
		}
		delete(files, g.File)
		delete(files, g.Weights)
	}
	data, err := json.Marshal(struct { // maps are written with sorted keys
		Inputs       []manifest.TensorSpec
		Scalars      []manifest.Scalar `json:",omitempty"`
		Outputs      []manifest.TensorSpec
		Parameters   []manifest.Parameter
		State        []manifest.State `json:",omitempty"`
		Players      []string         `json:",omitempty"`
		Buckets      []manifest.Bucket
		Graphs       []manifest.Graph
		Inference    []manifest.InferenceGraph `json:",omitempty"`
		Accumulation string
		Files        map[string]string
	}{m.Inputs, m.Scalars, m.Outputs, parameters, m.State, players, m.Buckets, graphs, stages, m.Accumulation, files})
	if err != nil {
		panic(err) // only for numbers that JSON cannot represent, and these came from JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
