package newplugin

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestNew writes a plugin in each language. scripts/test-template.sh builds it.
func TestNew(t *testing.T) {
	if got := Languages(); !slices.Equal(got, []string{"go", "python"}) {
		t.Errorf("there are templates in %v", got)
	}
	for _, language := range Languages() {
		folder := filepath.Join(t.TempDir(), "my plugins", "room-echo")
		var out bytes.Buffer
		if err := Command(&out, Options{Folder: folder, Language: language}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), hint.Path(folder)) {
			t.Errorf("%s: the output lacks the folder: %s", language, out.String())
		}
		data, err := os.ReadFile(filepath.Join(folder, "plugin.json"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := manifest.ParsePlugin("plugin.json", data)
		if err != nil || p.ID != "room-echo" || p.Stages[0].Name != "room-echo" {
			t.Errorf("%s: %+v, %v", language, p, err)
		}
		for _, name := range []string{
			".gitignore", ".github/workflows/test.yml", "LICENSE", "Makefile", "README.md", "sdk/LICENSE",
		} {
			if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || len(text) == 0 {
				t.Errorf("%s: %d bytes of %s, %v", language, len(text), name, err)
			}
		}
		if err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.Contains(path, "/sdk/") {
				return err
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(placeholder)) {
				t.Errorf("%s has the name of the template", path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for folder, want := range map[string]string{
		filepath.Join(dir, "Room"):                  `"Room" cannot be the name of a plugin`,
		filepath.Join(dir, "a b"):                   `"a b" cannot be`,
		filepath.Join(dir, ".hidden"):               "cannot be",
		filepath.Join(dir, strings.Repeat("a", 65)): "cannot be",
		filepath.Join(dir, "room."):                 "no '.' at the end",
		filepath.Join(dir, "aux"):                   "no device of Windows",
		filepath.Join(dir, "com1.x"):                "no device of Windows",
		".":                                         `"." cannot be`,
		dir + "/there":                              "it exists already",
		filepath.Join(dir, "a/b/ok"):                "",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "there"), 0o777); err != nil {
			t.Fatal(err)
		}
		err := Command(new(bytes.Buffer), Options{Folder: folder, Language: "go"})
		right := err == nil && want == ""
		if err != nil && want != "" {
			right = strings.Contains(err.Error(), want) && hint.Of(err) != ""
		}
		if !right {
			t.Errorf("%s: %v, want %q", folder, err, want)
		}
	}
	for _, language := range []string{"cobol", "", ".", "python/../go"} {
		err := Command(new(bytes.Buffer), Options{Folder: filepath.Join(dir, "x"), Language: language})
		want := "--lang " + language + ": there are templates in go and python"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused plugin has a folder: %v", err)
	}
}

// TestNamesOfOthers: a name of a plugin or stage that comes with the program, or of a neighbour, is refused. A link to
// features is not asked for where there is one.
func TestNamesOfOthers(t *testing.T) {
	dir := t.TempDir()
	for name, id := range map[string]string{"gate": "hum", "feats": "features"} {
		text := `{"id": "` + id + `", "version": "1", "protocol": 1, "executable": {"linux_amd64": "x"}, ` +
			`"stages": [{"name": "` + name + `", "kind": "augment", "deterministic": true,
			"inputs": [{"name": "a", "dtype": "f32", "shape": ["B", "T_wav"]}],
			"outputs": [{"name": "a", "dtype": "f32", "shape": ["B", "T_wav"]}]}]}`
		if _, err := manifest.ParsePlugin("plugin.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name+"-folder"), 0o777), os.WriteFile(
			filepath.Join(dir, name+"-folder", "plugin.json"), []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for name, by := range map[string]string{
		"logmel": "features, which comes", "inference": "inference, which comes",
		"hum": "hum in ", "gate": "hum in ",
	} {
		folder := filepath.Join(dir, name)
		err := Command(new(bytes.Buffer), Options{Folder: folder, Language: "go"})
		if err == nil || !strings.Contains(err.Error(), "already, of plugin "+by) ||
			!strings.HasSuffix(hint.Of(err), "plugins new "+filepath.Join(dir, "my-"+name)) {
			t.Errorf("%s: %v (%s)", name, err, hint.Of(err))
		}
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has a folder: %v", name, err)
		}
	}
	for _, folder := range []string{filepath.Join(dir, "new"), filepath.Join(t.TempDir(), "new")} {
		var out bytes.Buffer
		err := Command(&out, Options{Folder: folder, Language: "go"})
		linked := filepath.Dir(folder) == dir
		if err != nil || strings.Contains(out.String(), "link it into") == linked {
			t.Errorf("%v: %s", err, out.String())
		}
	}
}

// TestNothingIsLeft: a disk that fails leaves no part of a plugin.
func TestNothingIsLeft(t *testing.T) {
	parent := t.TempDir()
	err := write(filepath.Join(parent, "p"), map[string][]byte{"a": nil, "a/b": nil, "a/c": nil})
	entries, _ := os.ReadDir(parent)
	if err == nil || len(entries) > 0 {
		t.Errorf("%v; left are %v", err, entries)
	}
}
