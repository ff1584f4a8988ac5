package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/synthesizetest"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/variant"
)

// The test binary is the program as well: under the name of the program it runs main.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"xtts-host": main})
}

// TestScripts runs the scripts below testdata/script. In addition to testscript's own commands they have those of this
// file, and these variables:
//
//	$PLUGINS  a folder of plugins with features, built as `make build` does
//	$MINE     the plugin features under the name of mine, as an author builds it
//	$PICO     the smallest bundle
//	$SAMPLE   the embedded data set, unpacked
//	$SPEAKING a bundle that speaks (package synthesizetest)
//	$PROBED   a bundle with probes
//	$ADAPTED  that bundle with an adapter, which alone is trained
//
// The condition [tmpfs] says that a file system can be mounted by "unshare -Urm".
//
// HOME, XDG_CACHE_HOME and TMPDIR are empty folders of the script.
func TestScripts(t *testing.T) { testscript.Run(t, scripts(t, "testdata/script")) }

// scripts says how the scripts of a folder are run.
func scripts(t *testing.T, dir string) testscript.Params {
	t.Helper()
	library := absolute(t, "../..", ort.CachedLibrary)
	if named := os.Getenv(ort.LibraryEnv); named != "" {
		library = absolute(t, named)
	}
	// Every script runs in a folder that a shell, a URL or a format string could take apart, and has its plugins,
	// bundle and data there.
	root := filepath.Join(t.TempDir(), `a "b" ü|c`)
	if err := os.Mkdir(root, 0o777); err != nil {
		t.Fatal(err)
	}
	plugins, pico, sample := filepath.Join(root, "plugins"), filepath.Join(root, "pico"), unpackSample(t, root)
	buildPlugin(t, plugins, "features")
	mine := filepath.Join(root, "mine")
	program := filepath.Join(mine, catalogtest.Program("mine"))
	if err := catalogtest.Build(program, "../../plugins/testdata/mine"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(pico, os.DirFS("../../ortgraphs/testdata/pico")); err != nil {
		t.Fatal(err)
	}
	probed := filepath.Join(root, "probed")
	if err := os.CopyFS(probed, os.DirFS("../../ortgraphs/testdata/probed")); err != nil {
		t.Fatal(err)
	}
	speaking := filepath.Join(root, "speaking")
	if err := synthesizetest.Write(
		speaking, pico, "../../host/data/dataset/testdata/voicebpe/tokenizer.json",
	); err != nil {
		t.Fatal(err)
	}
	adapted := filepath.Join(root, "adapted")
	if _, err := variant.Rewrite(speaking, adapted, variant.Adapter("stop_head.weight")); err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir:                 dir,
		WorkdirRoot:         root,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "await": await, "signal": sendSignal, "status": status, "tree": tree, "empty": empty,
		},
		Condition: func(name string) (bool, error) {
			if name != "tmpfs" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return exec.Command("unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/tmp").Run() == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			for variable, dir := range map[string]string{"HOME": "home", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"} {
				path := filepath.Join(env.WorkDir, dir)
				if err := os.Mkdir(path, 0o777); err != nil {
					return err
				}
				env.Setenv(variable, path)
			}
			env.Setenv("PLUGINS", plugins)
			env.Setenv("MINE", mine)
			env.Setenv("PICO", pico)
			env.Setenv("PROBED", probed)
			env.Setenv("SAMPLE", sample)
			env.Setenv("SPEAKING", speaking)
			env.Setenv("ADAPTED", adapted)
			env.Setenv(ort.LibraryEnv, library)
			env.Setenv("XTTS_HOST_DEVICE", "cpu")            // also on a machine with a GPU
			env.Setenv("XTTS_HOST_MODEL_START_DELAY", "0.1") // runs of a few batches never fill the pipeline
			// under -race each program would rest for a second at its end
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Values[background{}] = new(background)
			return nil
		},
	}
}

func absolute(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildPlugin builds a first-party plugin into its folder below dir.
func buildPlugin(t *testing.T, dir, id string) {
	t.Helper()
	if err := catalogtest.Build(filepath.Join(dir, id, catalogtest.Program(id)), "../../plugins/"+id); err != nil {
		t.Fatal(err)
	}
}

func unpackSample(t *testing.T, parent string) string {
	t.Helper()
	dir, err := dataset.Sample(parent)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// exits is "exits STATUS PROGRAM ARG...": the program ends with that exit status. stdout and stderr then look at what
// it wrote.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARG...")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// patience bounds the waiting of await.
const patience = 60 * time.Second

// await is "await PATTERN FILE": the file will match the regular expression.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await PATTERN FILE")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	path := ts.MkAbs(args[1])
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if err == nil && pattern.Match(data) {
			return
		}
		if time.Since(began) > patience {
			ts.Fatalf("%s does not match %s: %v\n%s", args[1], args[0], err, data)
		}
	}
}

// background is the program that signal has sent a signal.
type background struct{ *exec.Cmd }

// sendSignal is "signal INT|TERM": sends it to the one program in the background.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}
	running := ts.BackgroundCmds()
	if neg || len(args) != 1 || signals[args[0]] == nil || len(running) != 1 {
		ts.Fatalf("usage: signal INT|TERM, with one program in the background")
	}
	ts.Value(background{}).(*background).Cmd = running[0]
	ts.Check(running[0].Process.Signal(signals[args[0]]))
}

// status is "status STATUS": the program that got the signal, and was waited for, has ended with that exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	cmd := ts.Value(background{}).(*background).Cmd
	if neg || len(args) != 1 || cmd == nil || cmd.ProcessState == nil {
		ts.Fatalf("usage: status STATUS, after signal and wait")
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// tree is "tree FOLDER": lists its files on stdout, in order.
func tree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tree FOLDER")
	}
	for _, file := range files(ts, args[0]) {
		fmt.Fprintln(ts.Stdout(), file)
	}
}

// empty is "empty FOLDER...": there is no file in them.
func empty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: empty FOLDER...")
	}
	for _, dir := range args {
		if found := files(ts, dir); len(found) > 0 {
			ts.Fatalf("in %s: %s", dir, strings.Join(found, ", "))
		}
	}
}

func files(ts *testscript.TestScript, dir string) []string {
	var list []string
	root := os.DirFS(ts.MkAbs(dir))
	ts.Check(fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, path)
		}
		return err
	}))
	return list
}
