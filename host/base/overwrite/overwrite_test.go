package overwrite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestCheck: an output that is an input, under whatever name, is refused; a file of its own is not.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, file := range []string{
		"me.wav", "data/metadata.csv", "data/wavs/a.wav", "data/notes.json", "list.jsonl", "clips/b.flac",
		"bundle/bundle.json", "bundle/graph.onnx", "bundle/mine.json", "run/config.yaml", "run/metrics.jsonl",
		"run/tensorboard/events", "run/nan-step-000002.json",
		"run/report.html",
		"run/checkpoints/step-000001/params.safetensors", "run/speech.wav", "plugins/a/plugin.json", "plugins/a/a",
		"plugins/list.json", "Case.wav",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o666)
		if file == "plugins/a/a" {
			mode = 0o777
		}
		if err := os.WriteFile(file, []byte(`{"files": {"graph.onnx": "00"}}`), mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"link.wav": "me.wav", "there": "data", "data/wavs/linked.wav": "../../me.wav", "dangling.wav": "nowhere.wav",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"hard.wav": "me.wav", "hard2.wav": "data/wavs/a.wav", "hard3.json": "data/notes.json",
	} {
		if err := os.Link(to, link); err != nil {
			t.Fatal(err)
		}
	}
	file, data, bundle, run, plugins := Place{"--speaker", "me.wav", File}, Place{"--train-data", "data", Data},
		Place{"--graph", "bundle", Bundle}, Place{"--run", "run", Run}, Place{"--plugins", "plugins", Plugins}
	list := Place{"--train-data", "data/metadata.csv", Data}
	for _, c := range []struct {
		out  string
		in   Place
		want string // "" for none
	}{
		{"me.wav", file, "the file of --speaker"}, {"./data/../me.wav", file, "the file"},
		{dir + "/me.wav", file, "the file"}, {"link.wav", file, "the file"}, {"hard.wav", file, "the file"},
		{"other.wav", file, ""}, {"dangling.wav", file, ""}, {"Case.wav", file, ""},
		{"data", data, "the folder of --train-data"}, {"there", data, "the folder"},
		{"data/wavs", data, "the folder wavs"}, {"data/new", data, ""}, {"data/metadata.csv", data, "a file"},
		{"there/wavs/a.wav", data, "a file"}, {"hard2.wav", data, "a file"}, {"data/wavs/linked.wav", data, "a file"},
		{"data/notes.json", data, ""}, {"hard3.json", data, ""}, {"data/new.wav", data, ""}, {"me.wav", data, "a file"},
		{"data/wavs/a.wav", list, "a file"}, {"data/metadata.csv", list, "the file"},
		{"bundle/bundle.json", bundle, "a file"}, {"bundle/graph.onnx", bundle, "a file"},
		{"bundle/mine.json", bundle, ""}, {"bundle", bundle, "the folder"}, {"run", run, "the folder"},
		{"run/config.yaml", run, "a file"}, {"run/metrics.jsonl", run, "a file"}, {"run/speech.wav", run, ""},
		{"run/tensorboard/events", run, "a file"}, {"run/nan-step-000002.json", run, "a file"},
		{"run/report.html", run, ""}, // a command writes it anew
		{"run/checkpoints/step-000001/params.safetensors", run, "a file"},
		{"run/checkpoints", run, "the folder checkpoints"}, {"plugins/a/plugin.json", plugins, "a file"},
		{"plugins/a/a", plugins, "a file"}, {"plugins/list.json", plugins, ""}, {"/dev/null", data, ""},
	} {
		err := Check([]Place{{Flag: "--out", Path: c.out}}, []Place{c.in})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.out, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), "--out "+c.out+" is "+c.want) ||
			!strings.Contains(hint.Of(err), "with --out")):
			t.Errorf("%s: %v (%s), want %s", c.out, err, hint.Of(err), c.want)
		}
	}
	if err := Check(
		[]Place{{Flag: "the standard output", Path: "me.wav"}}, []Place{file},
	); err == nil || hint.Of(err) != "redirect the standard output to another file" {
		t.Errorf("a stream: %v (%s)", err, hint.Of(err))
	}
	if err := Check([]Place{{Flag: "the standard output", Path: "data/metadata.csv"}}, []Place{data}); err != nil {
		t.Errorf("a stream into a folder: %v", err)
	}
}

// TestLinkedIsBounded: a list at the root of a disk does not have the whole disk looked at, and its recordings come
// first.
func TestLinkedIsBounded(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"a/1.wav", "a/2.wav", "a/3.wav", "wavs/4.wav", "z/5.wav"} {
		if err := errors.Join(
			os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o777),
			os.WriteFile(filepath.Join(dir, file), nil, 0o666),
		); err != nil {
			t.Fatal(err)
		}
	}
	looked := 0
	for file, want := range map[string]bool{"wavs/4.wav": true, "z/5.wav": false} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		belongs := func(rel string) bool { looked++; return ofData.MatchString(rel) }
		if got := linked(dir, folders[Data], info, belongs, 5); got != want || looked > 10 {
			t.Errorf("%s: found: %v, looked at %d files", file, got, looked)
		}
	}
}
