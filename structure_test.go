// Rules of the repository that hold for every package: who may import whom, and that each one explains itself.
package xttshost_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/xtts-host/xtts-host/"

// rule says what the packages below a folder may import of this repository. Standard packages are free. The longest
// matching folder counts, and packages of one folder's rule may import each other.
type rule struct {
	folder string
	own    string // folders, with a space between; "/..." after a folder means everything below it
}

// shelves are the folders of host, from the lowest. A package may import those of its shelf and of the shelves before
// it, and what its line names outside of host.
var shelves = []rule{
	{"host/base", "shared/hint"},
	{"host/stages", "shared/..."},
	{"host/settings", "gpu ortgraphs shared/..."},
	{"host/observe", "gpu ortgraphs/fuse/cost ortgraphs/safetensors shared/..."},
	{"host/data", "gpu ortgraphs ortgraphs/safetensors shared/..."},
	{"host/train", "gpu/... ortgraphs/... shared/..."},
	{"host/ranks", "gpu gpu/kernels gpu/nccl gpu/peers ortgraphs/ort shared/..."},
	{"host/speak", "gpu gpu/inventory ortgraphs ortgraphs/ort ortgraphs/safetensors shared/..."},
	{"host/run", "gpu gpu/inventory gpu/nccl ortgraphs ortgraphs/fuse/cost ortgraphs/fused ortgraphs/ort " +
		"ortgraphs/safetensors shared/..."},
	{"host/command", "gpu/... ortgraphs/... shared/..."},
}

// folders are the rules outside of host.
var folders = []rule{
	{"", ""}, // a package in a folder without a rule may import nothing of ours
	{"cmd", "cmd/internal/cli host/settings/limits/early shared/hint"},
	{"cmd/internal/cli", "host/... ortgraphs ortgraphs/ort shared/hint shared/manifest"},

	{"gpu", ""},
	{"gpu/cublas", "gpu/library"},
	{"gpu/cublas/cublastest", "gpu/cublas"},
	{"gpu/cuda", "gpu"},
	{"gpu/cudnn", "gpu/library"},
	{"gpu/cudnn/cudnntest", "gpu/cudnn"},
	{"gpu/gputest", "gpu"},
	{"gpu/inventory", "gpu gpu/cuda gpu/nvml"},
	{"gpu/nccl", "gpu/library shared/hint"},
	{"gpu/nccl/nccltest", "gpu gpu/nccl"},
	{"gpu/peers", "gpu gpu/kernels"},
	{"gpu/nvml", "gpu"},
	{"gpu/nvrtc", "gpu/library shared/hint"},
	{"gpu/nvrtc/nvrtctest", "gpu/nvrtc"},

	{"ortgraphs", "ortgraphs/leaves ortgraphs/onnxpb ortgraphs/operators ortgraphs/prune " +
		"ortgraphs/safetensors ortgraphs/shapes shared/..."},
	{"ortgraphs/bundletest", "ortgraphs ortgraphs/onnxpb ortgraphs/variant shared/manifest"},
	{"ortgraphs/fuse", "ortgraphs/leaves ortgraphs/onnxpb ortgraphs/operators ortgraphs/shapes"},
	{"ortgraphs/fuse/cost", "ortgraphs/fuse ortgraphs/fuse/cudac ortgraphs/onnxpb ortgraphs/shapes"},
	{"ortgraphs/fuse/cudac", "ortgraphs/fuse ortgraphs/onnxpb ortgraphs/operators ortgraphs/shapes"},
	{"ortgraphs/fuse/cudac/cudactest", ""},
	{"ortgraphs/fused", "ortgraphs/fuse/... ortgraphs/lifetime ortgraphs/onnxpb ortgraphs/ort ortgraphs/shapes " +
		"shared/..."},
	{"ortgraphs/fused/fusedtest", "ortgraphs/fuse/... ortgraphs/fused ortgraphs/ort/..."},
	{"ortgraphs/fused/prooftest", "ortgraphs/fuse/... ortgraphs/fused ortgraphs/onnxpb ortgraphs/ort/... " +
		"ortgraphs/shapes shared/manifest"},
	{"ortgraphs/lifetime", "ortgraphs/onnxpb ortgraphs/shapes"},
	{"ortgraphs/ort", "ortgraphs/onnxpb shared/hint shared/manifest"},
	{"ortgraphs/steady", "ortgraphs/onnxpb ortgraphs/shapes"},
	{"ortgraphs/variant", "ortgraphs ortgraphs/onnxpb ortgraphs/safetensors shared/manifest"},

	{"plugins", "plugins/... shared/..."},
	{"plugins/inference/frozen", "ortgraphs/onnxpb ortgraphs/ort ortgraphs/prune ortgraphs/safetensors plugins/... " +
		"shared/..."},
	{"plugins/internal/datagpu", "gpu/cuda ortgraphs/ort plugins/internal/gpustage/... shared/..."},
	{"plugins/internal/gpustage/engine", "gpu ortgraphs/ort plugins/internal/gpustage shared/..."},
	{"plugins/internal/gpustage/gpustagetest", "gpu/... ortgraphs/ort/... plugins/internal/... shared/..."},

	{"scripts/torture", "ortgraphs/variant shared/manifest"},
	{"shared", ""},
}

// filesPackage is the one through which every other opens files. It takes the place of package os, but in shared and in
// plugins; the stages of plugins/inference read graphs as the host does.
const filesPackage = "host/base/files"

// importers names the folders that may import a module of others.
var importers = map[string]string{
	"aead.dev/minisign":                     "host/stages/signature",
	"github.com/KimMachineGun/automemlimit": "host/settings/limits",
	"github.com/coreos/go-systemd":          "host/observe/systemd",
	"github.com/fsnotify/fsnotify":          "host/command/plugindev",
	"github.com/NVIDIA/go-nvml":             "gpu/nvml",
	"github.com/goccy/go-yaml":              "host/command/prepare host/settings/config",
	"github.com/gomlx/go-huggingface":       "host/data/dataset",
	"github.com/hajimehoshi/go-mp3":         "shared/audio/internal/mp3",
	"github.com/hashicorp/go-hclog":         "host/stages/supervise shared/stage",
	"github.com/hashicorp/go-plugin":        "host/stages/supervise shared/stage",
	"github.com/jfreymuth/vorbis":           "shared/audio/internal/vorbis",
	"github.com/landlock-lsm/go-landlock":   "host/stages/sandbox",
	"github.com/mattn/go-runewidth":         "host/base/fold",
	"github.com/nlpodyssey/safetensors":     "ortgraphs/safetensors",
	"github.com/pion/opus":                  "shared/audio/internal/opus",
	"github.com/prometheus/client_golang":   "host/observe/prometheus",
	"github.com/rivo/uniseg":                "host/speak/synthesize",
	"github.com/santhosh-tekuri/jsonschema": "shared/manifest",
	"github.com/spf13/cobra":                "cmd",
	"github.com/spf13/pflag":                "cmd/internal/cli host/settings/config",
	"github.com/vbauerster/mpb":             "host/observe/report",
	"github.com/yalue/onnxruntime_go":       "ortgraphs/ort",
	"github.com/zaf/g711":                   "plugins/augment/companding shared/audio/internal/wav",
	"golang.org/x/net":                      "host/observe/dashboard host/observe/page/pagetest host/stages/sandbox",
	"golang.org/x/mod":                      "host/base/release host/command/pluginstore scripts/gosdk",
	"golang.org/x/sync":                     "gpu/nvrtc host",
	"golang.org/x/sys":                      "host ortgraphs/ort ortgraphs/fuse/cudac/cudactest shared",
	"golang.org/x/term":                     "cmd/internal/cli",
	"golang.org/x/text":                     "host/data/dataset host/settings/texts shared",
	"gonum.org/v1/gonum":                    "host/data/dataset plugins/augment/room shared",
	"google.golang.org/grpc":                "host/stages/supervise shared",
	"google.golang.org/protobuf": "host/observe/tensorboard host/train/device host/train/nantrace ortgraphs shared " +
		"plugins/inference/frozen",
	"gorgonia.org/cu": "gpu/cuda",
}

// withCgo are the only packages that may use cgo.
var withCgo = strings.Fields(`gpu/cublas gpu/cublas/cublastest gpu/cudnn gpu/cudnn/cudnntest gpu/cuda gpu/cuda/cudatest gpu/library
	gpu/nccl gpu/nccl/nccltest gpu/nvrtc host/settings/limits/early ortgraphs/fuse/cudac/cudactest ortgraphs/ort ortgraphs/ort/orttest`)

type pkg struct {
	ImportPath, Doc, Name string
	Imports, CgoFiles     []string
	GoFiles               []string
}

// list returns the packages of a build.
func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Name,Imports,CgoFiles,GoFiles", "./...",
		module+"shared/...").Output()
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
		if len(p.CgoFiles) > 0 && !slices.Contains(withCgo, folder) {
			t.Errorf("%s uses cgo (%s)", folder, p.CgoFiles[0])
		}
		for _, imp := range p.Imports {
			if why := refuses(folder, imp); why != "" {
				t.Errorf("%s imports %s: %s", folder, imp, why)
			}
		}
	}
}

// TestEveryShelfIsUsed: each folder of host is a shelf with a page of its own, and each line of the tables has a
// package.
func TestEveryShelfIsUsed(t *testing.T) {
	entries, err := os.ReadDir("host")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		at := "host/" + e.Name()
		if e.IsDir() && !slices.ContainsFunc(shelves, func(r rule) bool { return r.folder == at }) {
			t.Errorf("%s is no shelf", at)
		}
	}
	for _, r := range shelves {
		if doc, err := os.ReadFile(r.folder + "/doc.go"); err != nil || !strings.Contains(string(doc), "This shelf") {
			t.Errorf("%s/doc.go does not say what belongs on \"This shelf\"", r.folder)
		}
		own, _ := filepath.Glob(r.folder + "/*.go")
		if len(own) > 1 && r.folder != "host/train" && r.folder != "host/run" {
			t.Errorf("%s is the page of a shelf: %s belongs in a package on it", r.folder, own[0])
		}
	}
	for _, r := range folders {
		if _, err := os.Stat(r.folder); err != nil && r.folder != "" {
			t.Error(err)
		}
	}
}

// prefixed is make's function that gives each word a prefix.
var prefixed = regexp.MustCompile(`\$\(addprefix (\S+),([^)]*)\)`)

// TestPackagesWithoutRaces: those that the Makefile tests without the race detector start no goroutine, and use nothing
// of package sync for calls from several.
func TestPackagesWithoutRaces(t *testing.T) {
	makefile := read(t, "Makefile")
	_, rest, found := strings.Cut(makefile, "\nPURE := ")
	pure, _, _ := strings.Cut(strings.ReplaceAll(rest, "\\\n", " "), "\n")
	pure = prefixed.ReplaceAllStringFunc(pure, func(call string) string {
		m := prefixed.FindStringSubmatch(call)
		return m[1] + strings.Join(strings.Fields(m[2]), " "+m[1])
	})
	if !found || pure == "" {
		t.Fatal("the Makefile names no PURE packages")
	}
	for _, s := range sources(t) {
		in := func(pattern string) bool {
			folder, all := strings.CutSuffix(strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), module), "/...")
			return path.Dir(s.path) == folder || all && below(path.Dir(s.path), folder)
		}
		if isTest(s.path) || !slices.ContainsFunc(strings.Fields(pure), in) {
			continue
		}
		for _, imp := range s.file.Imports {
			if strings.Contains(imp.Path.Value, "sync") {
				t.Errorf("%s imports %s", s.path, imp.Path.Value)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, is := n.(*ast.GoStmt); is {
				t.Errorf("%s starts a goroutine", s.fset.Position(n.Pos()))
			}
			return true
		})
	}
}

// TestReportsLinkNoONNXRuntime: what reads a run's files and events is built without ONNX Runtime.
func TestReportsLinkNoONNXRuntime(t *testing.T) {
	for folder, want := range map[string]bool{
		"host/observe/event": false, "host/observe/report": false, "host/train": true,
	} {
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
		{"host/stages/pipeline", module + "ortgraphs/ort"},
		{"host/stages/pipeline", "github.com/hashicorp/go-plugin"},
		{"shared/stage", module + "host/stages/catalog"},
		{"shared/ring", "github.com/yalue/onnxruntime_go"},
		{"plugins/features", module + "host/run"},
		{"gpu", "gorgonia.org/cu"},
		{"gpu/gputest", "gorgonia.org/cu"},
		{"gpu", module + "gpu/cuda"},
		{"gpu", "github.com/NVIDIA/go-nvml/pkg/nvml"},
		{"host/command/doctor", "github.com/NVIDIA/go-nvml/pkg/nvml"},
		{"ortgraphs", module + "host/run"},
		{"host/train", "github.com/yalue/onnxruntime_go"},
		{"host/stages/supervise", module + "host/settings/config"},
		{"host/base/exit", module + "host/train"},
		{"shared/stage", module + "host/base/files"},
		{"plugins/features/logmel", module + "host/base/files"},
	} {
		if refuses(c.folder, c.imp) == "" {
			t.Errorf("%s may import %s", c.folder, c.imp)
		}
	}
}

// refuses returns why a package may not import another, or "".
func refuses(folder, imp string) string {
	own, ok := strings.CutPrefix(imp, module)
	if first, _, _ := strings.Cut(imp, "/"); !ok && !strings.Contains(first, ".") {
		return "" // standard library
	}
	if !ok {
		for mod, may := range importers {
			if below(imp, mod) {
				if slices.ContainsFunc(strings.Fields(may), func(f string) bool { return below(folder, f) }) {
					return ""
				}
				return "only " + may + " may"
			}
		}
		return "no rule names this module"
	}
	r := ruleOf(folder)
	inPlugin := below(folder, "shared") || below(folder, "plugins") && !below(folder, "plugins/inference")
	if own == filesPackage && !inPlugin || r.folder != "" && ruleOf(own).folder == r.folder {
		return ""
	}
	for _, allowed := range strings.Fields(r.own) {
		if tree, all := strings.CutSuffix(allowed, "/..."); own == tree || all && below(own, tree) {
			return ""
		}
	}
	for _, s := range shelves {
		if s.folder == r.folder {
			break
		}
		if below(r.folder, "host") && below(own, s.folder) {
			return ""
		}
	}
	return "it may import " + r.own + " and the shelves below its own"
}

func ruleOf(folder string) (best rule) {
	for _, r := range slices.Concat(folders, shelves) {
		if below(folder, r.folder) && len(r.folder) > len(best.folder) {
			best = r
		}
	}
	return best
}

// below reports whether a path is a folder or leads into it.
func below(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// TestNoTensorOfAModelIsNamed: a graph is known by its manifest alone. Only the data set's own tensors have names in
// the host, and those are in host/data/dataset.
func TestNoTensorOfAModelIsNamed(t *testing.T) {
	name := regexp.MustCompile(`(?m)^[^/\n]*"[a-z_.]*(mel_spectrograms|mel_lengths|mel_loss|stop_loss|text_sequences)"`)
	for _, folder := range []string{"cmd", "host", "ortgraphs", "shared", "gpu"} {
		err := filepath.WalkDir(folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
				strings.HasPrefix(file, "host/data/dataset/") {
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

// TestExamplesHaveTheTemplate: the plugins of plugins/examples are built as those that `plugins new` writes.
func TestExamplesHaveTheTemplate(t *testing.T) {
	examples, err := filepath.Glob("plugins/examples/*/plugin.json")
	if err != nil || len(examples) == 0 {
		t.Fatal(examples, err)
	}
	for _, example := range examples {
		for _, name := range []string{"Makefile", "lock.py", "run", "pytest.ini"} {
			copied := filepath.Join(filepath.Dir(example), name)
			if read(t, copied) != read(t, filepath.Join("host/command/newplugin/template/python", name)) {
				t.Errorf("%s is not that of host/command/newplugin/template/python", copied)
			}
		}
	}
}

// TestGPUsKnowNoFlags: package gpu and those below it serve plugins, too. What a person should write instead is said
// where flags are known, in host/settings/place.
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
