package catalog

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/shared/hint"
)

const platform = runtime.GOOS + "_" + runtime.GOARCH

// pluginJSON is a small valid manifest.
func pluginJSON(id, program string) string {
	return fmt.Sprintf(`{"id": %q, "version": "1.0.0", "protocol": 1, %s, "stages": [{"name": "gain", "kind": "augment",
		"inputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"]}],
		"outputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"]}], "deterministic": true}]}`, id,
		program)
}

func executable(name string) string { return fmt.Sprintf(`"executable": {%q: %q}`, platform, name) }

func sumOf(content, name string) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(program(name, content))), name)
}

// program makes a script of the one letter that stands for the content of a program.
func program(name, content string) string {
	if strings.HasPrefix(name, "prog") && len(content) == 1 {
		return "#!/bin/sh\n" + content
	}
	return content
}

// write creates a file and its folders. A content "-> x" creates a link to x. Files whose names begin with "prog" are
// executable.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if target, ok := strings.CutPrefix(content, "-> "); ok {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(filepath.Base(path), "prog") {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(program(filepath.Base(path), content)), mode); err != nil {
		t.Fatal(err)
	}
}

// programJSON and scriptJSON are the manifests of plugins with a program, and with a script and its interpreter.
var (
	programJSON = pluginJSON("noise", executable("prog"))
	scriptJSON  = pluginJSON("noise", `"argv": ["sh", "-e", "main.sh"]`)
)

// states are folders with a plugin, and what Scan reports for each.
var states = []struct {
	name    string
	files   map[string]string
	state   State
	reason  string
	hint    string
	command []string // relative to the folder
	sum     bool
}{
	{"unverified", map[string]string{"plugin.json": programJSON, "prog": "x"},
		Unverified, "it has no plugin.sum", "", []string{"prog"}, false},
	{"verified", map[string]string{
		"plugin.json": programJSON, "prog": "x", "plugin.sum": sumOf(programJSON, "plugin.json") + sumOf("x", "prog"),
	}, Verified, "", "", []string{"prog"}, true},
	{"program changed", map[string]string{
		"plugin.json": programJSON, "prog": "y", "plugin.sum": sumOf(programJSON, "plugin.json") + sumOf("x", "prog"),
	}, Modified, fmt.Sprintf("prog has sha256 %x, but plugin.sum has %x", sha256.Sum256([]byte("#!/bin/sh\ny")),
		sha256.Sum256([]byte("#!/bin/sh\nx"))), "install the plugin again; if the change is yours, write its " +
		"plugin.sum again with sha256sum", nil, false},
	{
		"sums leave the manifest out",
		map[string]string{"plugin.json": programJSON, "prog": "x", "plugin.sum": sumOf("x", "prog")}, Modified,
		"plugin.sum does not list plugin.json",
		"install the plugin again; if the change is yours, write its plugin.sum again with sha256sum", nil, false,
	},
	{
		"sums leave the program out",
		map[string]string{"plugin.json": programJSON, "prog": "x", "plugin.sum": sumOf(programJSON, "plugin.json")},
		Modified, "plugin.sum does not list prog",
		"install the plugin again; if the change is yours, write its plugin.sum again with sha256sum", nil, false,
	},
	{
		"a listed file is missing",
		map[string]string{
			"plugin.json": programJSON, "prog": "x",
			"plugin.sum": sumOf(programJSON, "plugin.json") + sumOf("x", "prog") + sumOf("", "data.bin"),
		},
		Modified, "data.bin: no such file or directory",
		"install the plugin again; if the change is yours, write its plugin.sum again with sha256sum", nil, false,
	},
	{"changed beside a Makefile", map[string]string{
		"plugin.json": programJSON, "prog": "x", "plugin.sum": sumOf("x", "prog"),
		"Makefile": "build:\n\tsha256sum plugin.json prog > plugin.sum\n",
	}, Modified, "plugin.sum does not list plugin.json",
		"install the plugin again; if the change is yours, make -C DIR writes its plugin.sum again", nil, false},
	{"sums are garbage", map[string]string{"plugin.json": programJSON, "prog": "x", "plugin.sum": "hello\n"},
		Modified, "plugin.sum:1: not a line of sha256sum",
		"install the plugin again; if the change is yours, write its plugin.sum again with sha256sum", nil, false},
	{"no manifest", map[string]string{"README.md": ""}, Skipped, "it has no plugin.json", "", nil, false},
	{
		"manifest is not JSON", map[string]string{"plugin.json": "{"}, Broken, "plugin.json: not JSON: unexpected EOF",
		brokenHint, nil, false,
	},
	{
		"manifest has an unknown key",
		map[string]string{"plugin.json": strings.Replace(programJSON, `"id"`, `"color": 1, "id"`, 1), "prog": "x"},
		Broken, `plugin.json: top level: unknown key "color"`, brokenHint, nil, false,
	},
	{
		"a key of a stage outside of it",
		map[string]string{"plugin.json": strings.Replace(programJSON, `"id"`, `"data": {}, "id"`, 1), "prog": "x"},
		Broken, `plugin.json: top level: unknown key "data"`,
		"data is a key of a stage: put it into an entry of stages", nil, false,
	},
	{
		"another protocol",
		map[string]string{
			"plugin.json": strings.Replace(programJSON, `"protocol": 1`, `"protocol": 3`, 1), "prog": "x",
		},
		Broken, "it needs protocol 3, but this host has 1 and 2",
		"install a build of the plugin for this host's protocol (docs/plugin-protocol.md)", nil, false,
	},
	{
		"not built", map[string]string{"plugin.json": programJSON}, NotBuilt, "executable prog is missing",
		"build it, or install it again", nil, false,
	},
	{
		"not built, with a Makefile", map[string]string{"plugin.json": programJSON, "Makefile": "build:"}, NotBuilt,
		"executable prog is missing", "make -C DIR", nil, false,
	},
	{"not built, with sums", map[string]string{"plugin.json": programJSON, "plugin.sum": sumOf("x", "prog")},
		NotBuilt, "executable prog is missing", "build it, or install it again", nil, false},
	{
		"another platform",
		map[string]string{"plugin.json": pluginJSON("noise", `"executable": {"plan9_mips": "prog"}`), "prog": "x"},
		Broken, "plugin noise has no executable for " + platform, brokenHint, nil, false,
	},
	{"not executable", map[string]string{"plugin.json": pluginJSON("noise", executable("data")), "data": "x"},
		Broken, "executable data lacks the executable bit", "chmod +x DIR/data", nil, false},
	{
		"program is a folder", map[string]string{"plugin.json": programJSON, "prog/x": ""}, Broken,
		"executable prog is not a regular file", brokenHint, nil, false,
	},
	{"link inside", map[string]string{"plugin.json": programJSON, "prog": "-> prog_v2", "prog_v2": "x"},
		Unverified, "it has no plugin.sum", "", []string{"prog"}, false},
	{"program leads out", map[string]string{"plugin.json": programJSON, "prog": "-> /bin/sh"},
		Broken, "executable prog: a link that leaves the folder", brokenHint, nil, false},
	{"program leads out by ..", map[string]string{"plugin.json": programJSON, "prog": "-> ../prog"},
		Broken, "executable prog: a link that leaves the folder", brokenHint, nil, false},
	{"manifest leads out", map[string]string{"plugin.json": "-> /etc/hostname"},
		Broken, "plugin.json: a link that leaves the folder", brokenHint, nil, false},
	{
		"manifest dangles", map[string]string{"plugin.json": "-> gone"}, Broken, "plugin.json is a link to nothing",
		brokenHint, nil, false,
	},
	{"sums lead out", map[string]string{"plugin.json": programJSON, "prog": "x", "plugin.sum": "-> /etc/hostname"},
		Modified, "plugin.sum: a link that leaves the folder", brokenHint, nil, false},
	{
		"script", map[string]string{"plugin.json": scriptJSON, "main.sh": "x"}, Unverified, "it has no plugin.sum", "",
		[]string{"sh", "-e", "main.sh"}, false,
	},
	{
		"verified script",
		map[string]string{
			"plugin.json": scriptJSON, "main.sh": "x",
			"plugin.sum": sumOf(scriptJSON, "plugin.json") + sumOf("x", "main.sh"),
		},
		Verified, "", "", []string{"sh", "-e", "main.sh"}, false,
	},
	{
		"script not listed",
		map[string]string{"plugin.json": scriptJSON, "main.sh": "x", "plugin.sum": sumOf(scriptJSON, "plugin.json")},
		Modified, "plugin.sum does not list main.sh",
		"install the plugin again; if the change is yours, write its plugin.sum again with sha256sum", nil, false,
	},
	{"script leads out", map[string]string{"plugin.json": scriptJSON, "main.sh": "-> /bin/sh"},
		Broken, "argv: main.sh: a link that leaves the folder", brokenHint, nil, false},
	{
		"script in the folder",
		map[string]string{"plugin.json": pluginJSON("noise", `"argv": ["./prog.sh"]`), "prog.sh": "x"}, Unverified,
		"it has no plugin.sum", "", []string{"prog.sh"}, false,
	},
	{"script elsewhere", map[string]string{"plugin.json": pluginJSON("noise", `"argv": ["../prog.sh"]`)},
		Broken, `argv[0] "../prog.sh" leaves the folder`, brokenHint, nil, false},
	{"absolute script", map[string]string{"plugin.json": pluginJSON("noise", `"argv": ["/bin/sh"]`)},
		Broken, `argv[0] "/bin/sh" leaves the folder`, brokenHint, nil, false},
	{"no interpreter", map[string]string{"plugin.json": pluginJSON("noise", `"argv": ["no-such-interpreter"]`)},
		Broken, `argv[0]: "no-such-interpreter" is not in PATH`,
		"install it, or set PATH: docs/plugin-protocol.md, plugin.json", nil, false},
}

func TestScanStates(t *testing.T) {
	for _, tt := range states {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			folder := filepath.Join(dir, "one")
			for name, content := range tt.files {
				write(t, filepath.Join(folder, name), content)
			}
			entries, err := Scan(dir)
			if err != nil || len(entries) != 1 {
				t.Fatalf("Scan: %d entries, %v", len(entries), err)
			}
			e := entries[0]
			if e.State != tt.state || e.Reason != tt.reason {
				t.Errorf("state %s: %q\nwant  %s: %q", e.State, e.Reason, tt.state, tt.reason)
			}
			if got := strings.ReplaceAll(e.Hint, folder, "DIR"); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
			if e.Startable() != (tt.command != nil) || len(e.Command) != len(tt.command) {
				t.Fatalf("startable %v with command %q, want %q", e.Startable(), e.Command, tt.command)
			}
			if e.Startable() {
				if !filepath.IsAbs(e.Command[0]) || filepath.Base(e.Command[0]) != tt.command[0] ||
					!slices.Equal(e.Command[1:], tt.command[1:]) {
					t.Errorf("command %q, want %q", e.Command, tt.command)
				}
			}
			if (e.Sum != "") != tt.sum {
				t.Errorf("sum %q", e.Sum)
			}
		})
	}
}

// TestScanNotBuiltInCheckout: only a checkout has a Makefile that builds its plugins.
func TestScanNotBuiltInCheckout(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scripts", "build.sh"), "")
	write(t, filepath.Join(dir, "plugins", "one", "plugin.json"), programJSON)
	entries, err := Scan(filepath.Join(dir, "plugins"))
	if err != nil || len(entries) != 1 || entries[0].Hint != "make build builds the plugins that come with xtts-host" {
		t.Errorf("%v, %+v", err, entries)
	}
}

func TestScanFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b", "plugin.json"), pluginJSON("beta", executable("prog")))
	write(t, filepath.Join(dir, "b", "prog"), "x")
	write(t, filepath.Join(dir, "README.md"), "no folder")
	write(t, filepath.Join(dir, ".git", "plugin.json"), "{}")
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "plugin.json"), pluginJSON("alpha", executable("prog")))
	write(t, filepath.Join(elsewhere, "prog"), "x")
	write(t, filepath.Join(dir, "a"), "-> "+elsewhere)
	write(t, filepath.Join(dir, "dangling"), "-> nowhere")

	entries, err := Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %s %s", e.Name(), e.State, e.Reason))
	}
	want := []string{
		".git skipped its name begins with a dot",
		"alpha unverified it has no plugin.sum",
		"beta unverified it has no plugin.sum",
		"dangling broken no such file or directory",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if entries[1].Dir != elsewhere {
		t.Errorf("a linked folder has Dir %s, want %s", entries[1].Dir, elsewhere)
	}
}

func TestScanRefusesDuplicateIDs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name, "plugin.json"), pluginJSON("noise", executable("prog")))
		write(t, filepath.Join(dir, name, "prog"), "x")
	}
	entries, err := Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, other := range []string{"b", "a"} {
		e := entries[i]
		want := fmt.Sprintf("plugin id %q is also that of %s", "noise", filepath.Join(dir, other))
		if e.State != Broken || e.Reason != want || e.Command != nil {
			t.Errorf("%s is %s: %q with command %q, want %q", e.Dir, e.State, e.Reason, e.Command, want)
		}
	}
}

func TestScanErrors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder")
	if _, err := Scan(filepath.Join(dir, "gone")); err == nil ||
		!strings.HasSuffix(err.Error(), "gone: no such file or directory") {
		t.Errorf("a missing folder: %v", err)
	}
	write(t, filepath.Join(dir, "one", "plugin.json"), pluginJSON("noise", executable("prog")))
	_, err := Scan(filepath.Join(dir, "one"))
	if err == nil || hint.Of(err) != "take the folder around it: '"+dir+"'" {
		t.Errorf("a plugin's own folder: %v, hint %q", err, hint.Of(err))
	}
}

func FuzzParseSums(f *testing.F) {
	f.Add(sumOf("x", "prog") + sumOf("y", "plugin.json"))
	f.Add(sumOf("x", "prog") + sumOf("x", "prog"))
	f.Add(sumOf("x", "../prog"))
	f.Add(sumOf("x", "/prog"))
	f.Add(sumOf("x", ""))
	f.Add("")
	f.Add("\n")
	f.Add(strings.ToUpper(sumOf("x", "prog")))
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := archive.ParseSums([]byte(text))
		if err != nil {
			return
		}
		var back strings.Builder
		for _, l := range lines {
			if !filepath.IsLocal(l.Name) {
				t.Errorf("%q leads out of the folder", l.Name)
			}
			back.WriteString(l.Sum + "  " + l.Name + "\n")
		}
		if back.String() != text {
			t.Errorf("%q was read as %q", text, back.String())
		}
	})
}

// TestIdentity: what a run is identified by is the list of a plugin's sources, if plugin.sum has it, and else its
// program. It is the files of a folder without plugin.sum, and those that it lists of a script, or beside a program:
// each change of them changes it.
func TestIdentity(t *testing.T) {
	json, script := pluginJSON("gain", executable("prog")), pluginJSON("gain", `"argv": ["./prog"]`)
	sums := sumOf(json, "plugin.json") + sumOf("x", "prog")
	for _, c := range []struct {
		name, json, sum string
		want            string // the file whose sum it is, or what the identity is of
	}{
		{"a program", json, sums, "prog"},
		{"sources", json, sums + sumOf("list", "plugin.sources"), "plugin.sources"},
		{"sources that are not listed", json, sums, "prog"},
		{"data", json, sums + sumOf("zeros", "data/taps"), "data"},
		{"no sums", json, "", "all"},
		{"a script", script, sumOf(script, "plugin.json") + sumOf("x", "prog") + sumOf("zeros", "data/taps"), "data"},
		{"a script without sums", script, "", "all"},
	} {
		json := c.json
		dir := t.TempDir()
		write(t, filepath.Join(dir, "gain", "plugin.json"), json)
		write(t, filepath.Join(dir, "gain", "prog"), "x")
		write(t, filepath.Join(dir, "gain", "plugin.sources"), "list")
		write(t, filepath.Join(dir, "gain", "data/taps"), "zeros")
		if c.sum != "" {
			write(t, filepath.Join(dir, "gain", "plugin.sum"), c.sum)
		}
		entries, err := Scan(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"prog": sumOf("x", "prog")[:64], "plugin.sources": sumOf("list",
			"plugin.sources")[:64]}[c.want]
		got, err := entries[0].Identity()
		if err != nil || !entries[0].Startable() || want != "" && got != want {
			t.Errorf("%s: %s, identity %q, want %q; %v", c.name, entries[0].State, got, want, err)
		}
		for _, change := range []struct {
			file    string
			matters bool
		}{
			{".venv/lib", false},
			{"node_modules/a/index.js", false},
			{"module", c.want == "all"},
			{"data/taps", c.want == "data" || c.want == "all"},
		} {
			file := change.file
			write(t, filepath.Join(dir, "gain", file), "ones")
			if c.sum != "" {
				write(t, filepath.Join(dir, "gain", "plugin.sum"),
					strings.Replace(c.sum, sumOf("zeros", file), sumOf("ones", file), 1))
			}
			entries, err := Scan(dir)
			if err != nil {
				t.Fatal(err)
			}
			if now, err := entries[0].Identity(); err != nil || (now != got) != change.matters {
				t.Errorf("%s: with another %s the identity is %s, was %s; %v", c.name, file, now, got, err)
			}
			got, _ = entries[0].Identity()
		}
	}
}
