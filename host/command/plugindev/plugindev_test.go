package plugindev

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/command/plugintry"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
)

// lines collects what is written, for another goroutine.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait returns the text when it has a part, and fails when it does not get it.
func (l *lines) wait(t *testing.T, part string) string {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(l.String(), part); {
		if time.Now().After(end) {
			t.Fatalf("no %q in:\n%s", part, l)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return l.String()
}

// faulty is the plugin of the tests in a folder whose make copies it, from a file with its configuration schema as one
// of the sources.
func faulty(t *testing.T) Options {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "faulty")
	program := catalogtest.Program("faulty")
	built := filepath.Join(t.TempDir(), "built")
	if err := catalogtest.Build(filepath.Join(built, program), "../../../plugins/testdata/faulty"); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "Makefile", fmt.Sprintf(
		"build:\n\t@grep -q bad source && { echo bad source; exit 1; }; cp %s/* . && date +%%N > log.txt\n", built))
	write(t, folder, "source", "one")
	write(t, folder, "plugin.json", content(t, built, "plugin.json"))
	clip := filepath.Join(t.TempDir(), "A-0001.wav")
	tone(t, clip)
	return Options{Options: plugintry.Options{
		Stages: []string{"mix"}, Clip: clip, Epoch: 1, Step: 1, Count: 1, Seed: 1,
		Graph: "../../../ortgraphs/testdata/pico", CacheDir: t.TempDir(), Plugin: folder,
	}}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tone writes a WAV file.
func tone(t *testing.T, file string) {
	t.Helper()
	var samples []float32
	for i := range 4000 {
		samples = append(samples, float32(i%200-100)/128)
	}
	if err := synthesize.WriteWave(files.At(file), 22050, samples); err != nil {
		t.Fatal(err)
	}
}

// TestTurns: a change of a source makes a turn, faults of the build are shown, what the build writes is learned, and
// nothing is left at the end.
func TestTurns(t *testing.T) {
	o := faulty(t)
	ctx, cancel := context.WithCancel(t.Context())
	again := make(chan struct{})
	o.Again = again
	out, ended := new(lines), make(chan error, 1)
	go func() { ended <- Command(ctx, out, o) }()
	out.wait(t, "turn 1: built in ")
	out.wait(t, "turn 3: log.txt; built in ") // which each build writes anew
	out.wait(t, "\nlog.txt is written by each build: after this turn, only a change between builds counts\n")
	out.wait(t, "turn 4: log.txt; built in ")
	again <- struct{}{}
	out.wait(t, "turn 5: again; mix: ")
	write(t, o.Plugin, "source", "bad")
	out.wait(t, "turn 6: source; the build failed after ")
	if text := out.wait(t, "error: make"); !strings.Contains(text, "bad source") {
		t.Errorf("the output of the build is not shown:\n%s", text)
	}
	failed := content(t, o.Plugin+".dev", "turn.js")
	if !strings.HasPrefix(failed, `show({"turn":6,`) || !strings.Contains(failed, `"record":{`) ||
		!strings.Contains(failed, "bad source") {
		t.Errorf("the page of a turn that failed shows %s", failed)
	}
	write(t, o.Plugin, "source", "two")
	out.wait(t, "turn 7: source; built in ")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var r plugintry.Record
	if err := json.Unmarshal([]byte(content(t, o.Plugin+".dev", "draws.json")), &r); err != nil ||
		r.Epochs[0].Stages[0].Name != "mix" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, name := range []string{"before.wav", "1-mix.wav", "1-mix.png", "index.html"} {
		content(t, o.Plugin+".dev", name)
	}
	script := content(t, o.Plugin+".dev", "turn.js")
	if !strings.HasPrefix(script, `show({"turn":7,"plugin":"faulty","record":{`) || strings.Contains(script, "failure") {
		t.Error(script)
	}
}

// TestOnce: one turn ends with its error, and refuses a folder that it would watch.
func TestOnce(t *testing.T) {
	o := faulty(t)
	o.Once = true
	out := new(lines)
	if err := Command(t.Context(), out, o); err != nil || !strings.Contains(out.String(), "turn 1: built in ") {
		t.Errorf("%v\n%s", err, out)
	}
	write(t, o.Plugin, "source", "bad")
	if err := Command(t.Context(), out, o); exit.Code(err) != 2 || !strings.Contains(err.Error(), "bad source") {
		t.Error(err)
	}
	o.Out = filepath.Join(o.Plugin, "out")
	if err := Command(t.Context(), out, o); exit.Code(err) != 2 ||
		!strings.HasSuffix(err.Error(), "is in the folder that is watched") {
		t.Error(err)
	}
	o.Plugin = t.TempDir()
	if err := Command(t.Context(), out, o); exit.Code(err) != 2 ||
		!strings.HasSuffix(err.Error(), "has no plugin.json") {
		t.Error(err)
	}
}

// TestBuildEnds: the end of the context ends a build and what it has started.
func TestBuildEnds(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "Makefile", "build:\n\t@(sleep 61 & echo $$! > pid; wait)\n")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if data, _ := os.ReadFile(filepath.Join(folder, "pid")); len(data) > 1 {
				cancel()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	began := time.Now()
	err := build(ctx, folder, []string{"make"}, false)
	if err != context.Canceled || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	pid := strings.TrimSpace(content(t, folder, "pid"))
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s runs on: %s", pid, stat)
		}
	}
}

// TestBuildLeavesProcess: a build whose command has ended well is done, whatever runs on in the background.
func TestBuildLeavesProcess(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "Makefile", "build:\n\t@sleep 7 &\n")
	if err := build(t.Context(), folder, []string{"make"}, false); err != nil {
		t.Error(err)
	}
}

// TestLink: the folders around a link to a plugin's folder are those of the link.
func TestLink(t *testing.T) {
	target, around := t.TempDir(), t.TempDir()
	write(t, target, "plugin.json", "{}")
	link := filepath.Join(around, "own")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	o, err := Options{Options: plugintry.Options{Plugin: link}}.places()
	if err != nil || o.Plugin != target || o.Plugins != around || o.Out != link+".dev" {
		t.Errorf("%+v, %v", o, err)
	}
}
