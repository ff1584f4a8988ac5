// Rules of the repository that hold for every package: who may import whom, and that each one explains itself.
package xttshost_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/xtts-host/xtts-host/"

// rule says what the packages below a folder may import of this module and of others. Standard packages are free. The
// longest matching folder counts.
type rule struct {
	folder string
	own    []string // folders of this module; "..." after a folder means everything below it
	others []string // module paths
	noCgo  bool
}

var (
	wire   = []string{"golang.org/x/sys/", "google.golang.org/grpc", "google.golang.org/protobuf/"}
	plugin = append([]string{"github.com/hashicorp/go-plugin", "github.com/hashicorp/go-hclog", "github.com/santhosh-tekuri/jsonschema/v6", "golang.org/x/text/"}, wire...)
)

var rules = []rule{
	{folder: "", own: nil}, // a package in a folder without a rule may import nothing of ours
	{folder: "cmd", own: []string{"cmd/internal/cli", "host/limits/early", "shared/hint"}, others: []string{"github.com/spf13/cobra/doc"}},
	{folder: "shared/fold", others: []string{"github.com/mattn/go-runewidth"}},
	{folder: "cmd/internal/cli", own: []string{"shared/fold", "host", "host/bench", "host/catalog", "host/config", "host/console", "host/datacheck", "host/doctor", "host/evaluate", "host/exit", "host/fetch", "host/inspect", "host/overwrite", "host/plugintest", "host/plugintry", "host/probe", "host/synthesize", "host/validate", "ortgraphs", "ortgraphs/ort", "shared/hint", "shared/manifest", "shared/visible"}, others: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"}},
	{folder: "host", own: []string{"host...", "ortgraphs", "ortgraphs/lint", "ortgraphs/ort", "ortgraphs/safetensors", "gpu", "gpu/cuda", "gpu/inventory", "shared..."}, others: []string{"golang.org/x/sync/"}},
	{folder: "host/batch", own: []string{"gpu", "host/catalog", "host/checkpoint", "host/disk", "host/dataset", "host/featurecache", "host/pipeline", "host/report", "host/supervise", "host/train", "host/world", "ortgraphs", "shared..."}, noCgo: true},
	{folder: "host/bench", own: []string{"gpu", "gpu/inventory", "host", "host/batch", "host/bench/pytorch", "host/catalog", "host/config", "host/console", "host/exit", "host/place", "host/plan", "host/report", "host/train", "ortgraphs", "shared/fold", "shared/hint", "shared/manifest", "shared/visible"}, noCgo: true},
	{folder: "host/bench/pytorch", own: []string{"shared/hint"}, noCgo: true},
	{folder: "host/limits", own: []string{"shared/hint"}, others: []string{"github.com/KimMachineGun/automemlimit", "golang.org/x/sys/"}, noCgo: true},
	{folder: "host/limits/early"},
	{folder: "host/doctor", own: []string{"gpu", "host/config", "host/exit", "host/limits", "host/place", "host/plan", "host/preflight", "host/probe", "host/report", "ortgraphs/ort", "shared/hint"}, others: []string{"golang.org/x/sys/"}, noCgo: true},
	{folder: "host/cachedir", own: []string{"shared/owner"}, noCgo: true},
	{folder: "host/config", own: []string{"host/texts", "host/cachedir", "host/checkpoint", "host/featurecache", "shared/owner", "shared/hint", "shared/manifest", "shared/plain", "shared/visible"}, others: []string{"github.com/spf13/pflag", "github.com/goccy/go-yaml"}, noCgo: true},
	{folder: "host/console", own: []string{"host/event", "host/report", "host/train", "shared/fold", "shared/visible"}, noCgo: true},
	{folder: "host/catalog", own: []string{"shared..."}, others: []string{"golang.org/x/sys/"}, noCgo: true},
	{folder: "host/checkpoint", own: []string{"host/disk", "host/schedule", "ortgraphs/safetensors", "shared..."}, noCgo: true},
	{folder: "host/dataset", own: []string{"host/dataset...", "host/texts", "ortgraphs/safetensors", "shared..."}, others: []string{"gonum.org/v1/gonum/", "github.com/gomlx/go-huggingface/", "github.com/zaf/g711", "github.com/jfreymuth/vorbis", "github.com/pion/opus", "github.com/hajimehoshi/go-mp3", "golang.org/x/text/", "golang.org/x/sync/"}, noCgo: true},
	{folder: "host/datacheck", own: []string{"host/texts", "host/batch", "host/config", "host/console", "host/dataset", "host/disk", "host/exit", "host/report", "ortgraphs", "shared/hint", "shared/manifest", "shared/visible"}, others: []string{"golang.org/x/sync/"}, noCgo: true},
	{folder: "host/debug", own: []string{"host/disk", "ortgraphs/safetensors", "shared..."}, noCgo: true},
	{folder: "host/kernels", own: []string{"gpu", "gpu/cublas", "gpu/nvrtc", "ortgraphs/fused", "ortgraphs/ort"}, noCgo: true},
	{folder: "host/device", own: []string{"gpu", "gpu/cuda", "host/train", "ortgraphs", "ortgraphs/lint", "ortgraphs/onnxpb", "ortgraphs/ort", "ortgraphs/shapes", "shared/hint"}, others: []string{"google.golang.org/protobuf/"}, noCgo: true},
	{folder: "host/disk", noCgo: true},
	{folder: "host/featurecache", own: []string{"host/cachedir", "host/disk", "shared/hint"}, noCgo: true},
	{folder: "host/freeze", own: []string{"shared/hint", "shared/manifest"}, noCgo: true},
	{folder: "host/groups", own: []string{"host/freeze", "shared/hint", "shared/manifest"}, noCgo: true},
	{folder: "host/exit", own: []string{"gpu", "host/batch", "host/supervise", "host/train", "ortgraphs/ort", "shared/hint", "shared/visible"}, noCgo: true},
	{folder: "host/inspect", own: []string{"host/catalog", "host/config", "host/exit", "host/memory", "host/report", "ortgraphs", "ortgraphs/fuse", "ortgraphs/fused", "ortgraphs/lifetime", "ortgraphs/lint", "ortgraphs/ort", "ortgraphs/shapes", "shared/hint", "shared/manifest", "shared/visible"}, noCgo: true},
	{folder: "host/fetch", own: []string{"gpu/library", "host/exit", "ortgraphs/ort", "shared/hint"}, noCgo: true},
	{folder: "host/memory", own: []string{"gpu", "host/catalog", "host/exit", "host/report", "host/train", "ortgraphs", "ortgraphs/lifetime", "ortgraphs/ort", "shared/hint", "shared/manifest", "shared/visible"}, noCgo: true},
	{folder: "host/overwrite", own: []string{"shared/hint"}, noCgo: true},
	{folder: "host/pipeline", own: nil, noCgo: true},
	{folder: "host/plugintest", own: []string{"host/batch", "host/catalog", "host/config", "host/exit", "host/pipeline", "host/report", "host/supervise", "ortgraphs", "ortgraphs/ort", "shared..."}, others: []string{"golang.org/x/sys/"}, noCgo: true},
	{folder: "host/plugintry", own: []string{"host/batch", "host/catalog", "host/config", "host/dataset", "host/disk", "host/exit", "host/overwrite", "host/pipeline", "host/report", "host/supervise", "ortgraphs", "ortgraphs/ort", "shared..."}, noCgo: true},
	{folder: "host/probe", own: []string{"gpu", "gpu/cuda", "gpu/inventory", "gpu/library", "gpu/nvrtc", "ortgraphs/ort", "shared/hint", "shared/ring"}, noCgo: true},
	{folder: "host/evaluate", own: []string{"gpu/inventory", "host/batch", "host/config", "host/console", "host/dataset", "host/event", "host/exit", "host/loop", "host/machine", "host/pipeline", "host/plan", "host/record", "host/report", "host/session", "host/train", "shared/hint", "shared/visible"}, others: []string{"golang.org/x/sync/"}, noCgo: true},
	{folder: "host/inference", own: []string{"gpu", "host/device", "ortgraphs", "ortgraphs/ort", "ortgraphs/safetensors", "shared/manifest"}, noCgo: true},
	{folder: "host/samples", own: []string{"host/texts", "gpu", "host/checkpoint", "host/dataset", "host/device", "host/disk", "host/event", "host/inference", "host/report", "host/synthesize", "ortgraphs", "ortgraphs/ort", "shared/hint", "shared/manifest"}, noCgo: true},
	{folder: "host/synthesize", own: []string{"host/texts", "gpu", "gpu/inventory", "host/checkpoint", "host/config", "host/console", "host/dataset", "host/device", "host/disk", "host/exit", "host/inference", "host/place", "host/report", "host/synthesize/griffinlim", "host/synthesize/sampling", "host/train", "ortgraphs", "ortgraphs/ort", "ortgraphs/safetensors", "shared/hint", "shared/manifest", "shared/mel", "shared/plain", "shared/visible"}, others: []string{"github.com/rivo/uniseg"}, noCgo: true},
	{folder: "host/synthesize/griffinlim", own: []string{"shared/fft", "shared/manifest", "shared/mel"}, noCgo: true},
	{folder: "host/synthesize/sampling", noCgo: true},
	{folder: "host/event", own: []string{"shared/visible"}, noCgo: true},
	{folder: "host/place", own: []string{"gpu", "host/config", "host/report", "shared/hint"}, noCgo: true},
	{folder: "host/record", own: []string{"gpu", "host/batch", "host/catalog", "host/config", "host/dataset", "host/disk", "host/event", "host/place", "host/precision", "host/report", "host/schedule", "host/texts", "host/train", "shared/manifest", "shared/visible"}, noCgo: true},
	{folder: "host/report", own: []string{"host/disk", "host/event", "host/pipeline", "host/stat", "shared..."}, others: []string{"github.com/vbauerster/mpb/v8"}, noCgo: true},
	{folder: "host/config/configtest", own: []string{"host/config"}, noCgo: true},
	{folder: "host/report/screentest", others: []string{"golang.org/x/sys/"}},
	{folder: "host/supervise", own: []string{"host/catalog", "shared..."}, others: plugin, noCgo: true},
	{folder: "host/trace", own: []string{"host/disk", "host/pipeline", "shared/hint"}, noCgo: true},
	{folder: "host/train", own: []string{"gpu", "gpu/kernels", "host/event", "host/pipeline", "host/schedule", "host/checkpoint", "ortgraphs", "ortgraphs/fused", "ortgraphs/lifetime", "ortgraphs/ort", "ortgraphs/safetensors", "ortgraphs/steady", "shared..."}, others: []string{"golang.org/x/sync/"}},
	{folder: "host/precision", own: []string{"gpu", "ortgraphs", "shared/hint", "shared/manifest"}, noCgo: true},
	{folder: "host/preflight", own: []string{"gpu", "host/batch", "host/config", "host/debug", "host/exit", "host/featurecache", "host/inspect", "host/memory", "host/plan", "host/report", "host/runfolder", "host/trace", "shared/hint", "shared/visible"}, noCgo: true},
	{folder: "host/validate", own: []string{"gpu", "gpu/inventory", "host/batch", "host/config", "host/console", "host/dataset", "host/disk", "host/doctor", "host/event", "host/exit", "host/loop", "host/machine", "host/memory", "host/pipeline", "host/place", "host/plan", "host/preflight", "host/probe", "host/record", "host/report", "host/schedule", "host/session", "host/train", "ortgraphs/ort", "shared/hint"}, others: []string{"golang.org/x/sys/"}, noCgo: true},
	{folder: "host/plan", own: []string{"gpu", "host/batch", "host/cachedir", "host/catalog", "host/checkpoint", "host/config", "host/dataset", "host/disk", "host/exit", "host/freeze", "host/groups", "host/limits", "host/memory", "host/place", "host/precision", "host/record", "host/report", "host/resume", "host/runfolder", "host/samples", "host/schedule", "host/synthesize", "host/texts", "host/train", "host/world", "ortgraphs", "ortgraphs/ort", "ortgraphs/safetensors", "shared/hint", "shared/manifest", "shared/ring", "shared/visible"}, noCgo: true},
	{folder: "host/resume", own: []string{"host/checkpoint", "host/disk", "host/report", "host/schedule", "shared..."}, noCgo: true},
	{folder: "host/loop", own: []string{"host/batch", "host/debug", "host/event", "host/machine", "host/pipeline", "host/plan", "host/report", "host/session", "host/trace", "host/train", "shared/ring"}, noCgo: true},
	{folder: "host/machine", own: []string{"gpu", "host/batch", "host/catalog", "host/debug", "host/event", "host/featurecache", "host/plan", "host/supervise", "host/watch", "ortgraphs/ort", "shared/hint", "shared/ring", "shared/stagepb"}, others: []string{"golang.org/x/sync/"}, noCgo: true},
	{folder: "host/session", own: []string{"gpu", "gpu/cuda", "host/batch", "host/checkpoint", "host/config", "host/device", "host/exit", "host/kernels", "host/memory", "host/plan", "host/report", "host/train", "host/watch", "ortgraphs", "ortgraphs/ort", "ortgraphs/fused", "shared/hint"}, noCgo: true},
	{folder: "host/runfolder", own: []string{"host/checkpoint", "host/config", "host/disk", "host/exit", "host/report", "shared/hint"}, noCgo: true},
	{folder: "host/ending", own: []string{"host/checkpoint", "host/report", "host/save", "host/supervise", "host/train", "shared/files", "shared/hint"}, noCgo: true},
	{folder: "host/save", own: []string{"host/checkpoint", "host/disk", "host/event", "shared/hint", "shared/visible"}, noCgo: true},
	{folder: "host/schedule", noCgo: true},
	{folder: "host/stat", noCgo: true},
	{folder: "host/texts", own: []string{"shared/hint"}, others: []string{"golang.org/x/text/"}, noCgo: true},
	{folder: "host/world", noCgo: true},
	{folder: "host/watch", own: []string{"gpu", "host/event", "host/place", "host/stat"}, noCgo: true},
	{folder: "ortgraphs", own: []string{"ortgraphs/leaves", "ortgraphs/onnxpb", "ortgraphs/prune", "ortgraphs/safetensors", "ortgraphs/shapes", "shared/hint", "shared/manifest", "shared/unpack"}, others: []string{"google.golang.org/protobuf/", "github.com/nlpodyssey/safetensors"}, noCgo: true},
	{folder: "ortgraphs/bundletest", own: []string{"ortgraphs", "ortgraphs/onnxpb", "ortgraphs/variant", "shared/manifest"}, noCgo: true},
	{folder: "ortgraphs/variant", own: []string{"ortgraphs", "ortgraphs/onnxpb", "ortgraphs/safetensors", "shared/manifest"}, others: []string{"google.golang.org/protobuf/"}, noCgo: true},
	{folder: "scripts/torture", own: []string{"ortgraphs/variant", "shared/manifest"}, noCgo: true},
	{folder: "ortgraphs/fused/fusedtest", own: []string{"ortgraphs/fuse/cudac", "ortgraphs/fuse/cudac/cudactest", "ortgraphs/fused", "ortgraphs/ort", "ortgraphs/ort/orttest"}, noCgo: true},
	{folder: "ortgraphs/fused", own: []string{"ortgraphs/fuse", "ortgraphs/fuse/cudac", "ortgraphs/lifetime", "ortgraphs/onnxpb", "ortgraphs/ort", "ortgraphs/shapes", "shared/manifest"}, others: []string{"google.golang.org/protobuf/"}, noCgo: true},
	{folder: "ortgraphs/lifetime", own: []string{"ortgraphs/onnxpb", "ortgraphs/shapes"}, others: []string{"google.golang.org/protobuf/"}, noCgo: true},
	{folder: "ortgraphs/fuse/cudac", own: []string{"ortgraphs/fuse", "ortgraphs/onnxpb", "ortgraphs/shapes"}, noCgo: true},
	{folder: "ortgraphs/fuse/cudac/cudactest", own: []string{}, others: []string{"golang.org/x/sys/"}},
	{folder: "ortgraphs/steady", own: []string{"ortgraphs/onnxpb", "ortgraphs/shapes"}, others: []string{"google.golang.org/protobuf/"}, noCgo: true},
	{folder: "ortgraphs/fuse", own: []string{"ortgraphs/leaves", "ortgraphs/onnxpb", "ortgraphs/shapes"}, others: []string{"google.golang.org/protobuf/"}, noCgo: true},
	{folder: "ortgraphs/ort", own: []string{"ortgraphs/ort", "shared/manifest"}, others: []string{"github.com/yalue/onnxruntime_go", "golang.org/x/sys/"}},
	{folder: "gpu", noCgo: true},
	{folder: "gpu/cublas"},
	{folder: "gpu/cublas/cublastest", own: []string{"gpu/cublas"}},
	{folder: "gpu/cuda", own: []string{"gpu"}, others: []string{"gorgonia.org/cu"}},
	{folder: "gpu/inventory", own: []string{"gpu", "gpu/cuda", "gpu/nvml"}, noCgo: true},
	{folder: "gpu/gputest", own: []string{"gpu"}, noCgo: true},
	{folder: "gpu/kernels", noCgo: true},
	{folder: "gpu/library"},
	{folder: "gpu/nvrtc", own: []string{"shared/hint"}, others: []string{"golang.org/x/sync/"}},
	{folder: "gpu/nvrtc/nvrtctest", own: []string{"gpu/nvrtc"}},
	{folder: "gpu/nvml", own: []string{"gpu"}, others: []string{"github.com/NVIDIA/go-nvml/"}},
	{folder: "shared", own: []string{"shared..."}, others: plugin, noCgo: true},
	{folder: "shared/fft", others: []string{"gonum.org/v1/gonum/"}, noCgo: true},
	{folder: "plugins/internal/datagpu", own: []string{"gpu/cuda", "ortgraphs/ort", "plugins/internal/gpustage...", "shared..."}, noCgo: true},
	{folder: "plugins/internal/gpustage/engine", own: []string{"gpu", "ortgraphs/ort", "plugins/internal/gpustage", "shared..."}, noCgo: true},
	{folder: "plugins/internal/gpustage/gpustagetest", own: []string{"gpu...", "ortgraphs/ort...", "plugins/internal...", "shared..."}, noCgo: true},
	{folder: "plugins/inference/frozen", own: []string{"ortgraphs/onnxpb", "ortgraphs/ort", "ortgraphs/prune", "ortgraphs/safetensors", "plugins/internal/gpustage", "shared..."}, others: []string{"google.golang.org/protobuf/"}, noCgo: true},
	{folder: "plugins", own: []string{"plugins...", "shared..."}, noCgo: true},
}

// filesPackage is the one through which every other opens files.
const filesPackage = "shared/files"

// onlyImporter names the one folder that may import a module.
var onlyImporter = map[string]string{
	"github.com/yalue/onnxruntime_go": "ortgraphs/ort",
	"gorgonia.org/cu":                 "gpu/cuda",
	"github.com/NVIDIA/go-nvml":       "gpu/nvml",
	"github.com/zaf/g711":             "host/dataset/internal/wav",
	"github.com/jfreymuth/vorbis":     "host/dataset/internal/vorbis",
	"github.com/pion/opus":            "host/dataset/internal/opus",
	"github.com/hajimehoshi/go-mp3":   "host/dataset/internal/mp3",
}

type pkg struct {
	ImportPath, Doc, Name string
	Imports, CgoFiles     []string
	GoFiles               []string
}

// list returns the packages of a build.
func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Name,Imports,CgoFiles,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles)+len(p.CgoFiles) > 0 {
			pkgs = append(pkgs, p)
		}
	}
}

func TestPackagesExplainThemselves(t *testing.T) {
	for _, p := range list(t) {
		if p.Doc == "" {
			t.Errorf("%s has no doc comment", p.ImportPath)
		}
	}
}

func TestImportArrows(t *testing.T) {
	for _, p := range list(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		r := ruleOf(folder)
		if r.noCgo && len(p.CgoFiles) > 0 {
			t.Errorf("%s uses cgo (%s)", folder, p.CgoFiles[0])
		}
		for _, imp := range p.Imports {
			if why := r.refuses(folder, imp); why != "" {
				t.Errorf("%s imports %s: %s", folder, imp, why)
			}
		}
	}
}

// TestReportsLinkNoONNXRuntime: what reads a run's files and events is built without ONNX Runtime.
func TestReportsLinkNoONNXRuntime(t *testing.T) {
	for folder, want := range map[string]bool{"host/event": false, "host/report": false, "host/train": true} {
		out, err := exec.Command("go", "list", "-deps", "./"+folder).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), "onnxruntime_go"); got != want {
			t.Errorf("%s links ONNX Runtime: %v, want %v", folder, got, want)
		}
	}
}

func TestRulesRefuse(t *testing.T) {
	for _, c := range []struct{ folder, imp string }{
		{"host/pipeline", module + "ortgraphs/ort"},
		{"host/pipeline", "github.com/hashicorp/go-plugin"},
		{"shared/stage", module + "host/catalog"},
		{"shared/ring", "github.com/yalue/onnxruntime_go"},
		{"plugins/features", module + "host"},
		{"gpu", "gorgonia.org/cu"},
		{"gpu/gputest", "gorgonia.org/cu"},
		{"gpu", module + "gpu/cuda"},
		{"gpu", "github.com/NVIDIA/go-nvml/pkg/nvml"},
		{"host/doctor", "github.com/NVIDIA/go-nvml/pkg/nvml"},
		{"ortgraphs", module + "host"},
		{"host/train", "github.com/yalue/onnxruntime_go"},
	} {
		if ruleOf(c.folder).refuses(c.folder, c.imp) == "" {
			t.Errorf("%s may import %s", c.folder, c.imp)
		}
	}
}

func ruleOf(folder string) rule {
	best := rules[0]
	for _, r := range rules {
		if (folder == r.folder || strings.HasPrefix(folder, r.folder+"/")) && len(r.folder) > len(best.folder) {
			best = r
		}
	}
	return best
}

func (r rule) refuses(folder, imp string) string {
	for mod, only := range onlyImporter {
		if strings.HasPrefix(imp, mod) && folder != only && !strings.HasPrefix(folder, only+"/") {
			return "only " + only + " may"
		}
	}
	if own, ok := strings.CutPrefix(imp, module); ok {
		if own == filesPackage {
			return "" // it takes the place of package os
		}
		for _, allowed := range r.own {
			tree, below := strings.CutSuffix(allowed, "...")
			if own == tree || own == allowed || below && strings.HasPrefix(own, tree+"/") || strings.HasPrefix(own, path.Join(folder, "internal")) {
				return ""
			}
		}
		return "the arrows are " + strings.Join(r.own, ", ")
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return "" // standard library
	}
	for _, allowed := range r.others {
		if strings.HasPrefix(imp, allowed) {
			return ""
		}
	}
	return "no rule names this module"
}

// TestNoTensorOfAModelIsNamed: a graph is known by its manifest alone. Only the data set's own tensors have names in the
// host, and those are in host/dataset.
func TestNoTensorOfAModelIsNamed(t *testing.T) {
	name := regexp.MustCompile(`(?m)^[^/\n]*"[a-z_.]*(mel_spectrograms|mel_lengths|mel_loss|stop_loss|text_sequences)"`)
	for _, folder := range []string{"cmd", "host", "ortgraphs", "shared", "gpu"} {
		err := filepath.WalkDir(folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "host/dataset/") {
				return err
			}
			data, err := os.ReadFile(file)
			if found := name.Find(data); found != nil {
				t.Errorf("%s names %s", file, found)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestGPUsKnowNoFlags: package gpu and those below it serve plugins, too. What a person should write instead is said where flags
// are known, in host/place.
func TestGPUsKnowNoFlags(t *testing.T) {
	flag := regexp.MustCompile(`"[^"\n]*--[a-z][a-z-]+`)
	err := filepath.WalkDir("gpu", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		data, err := os.ReadFile(file)
		if found := flag.Find(data); found != nil {
			t.Errorf("%s words a flag: %s", file, found)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
