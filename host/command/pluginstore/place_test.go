package pluginstore

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// place is a user's machine: a folder with plugins, configuration and temporary files.
type place struct {
	testing.TB
	top string
	out bytes.Buffer
}

func newPlace(t *testing.T) *place {
	p := &place{TB: t, top: filepath.Join(t.TempDir(), "mein Übungs-Ordner")}
	t.Setenv("XDG_CONFIG_HOME", p.path("config"))
	t.Setenv("TMPDIR", p.path("tmp"))
	for _, folder := range []string{"tmp", "config", "plugins"} {
		if err := os.MkdirAll(p.path(folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.top, filepath.FromSlash(name)) }

func (p *place) write(name string, data []byte) {
	p.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o777); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), data, 0o644); err != nil {
		p.Fatal(err)
	}
}

// install installs into the folder plugins.
func (p *place) install(o InstallOptions) error {
	o.Plugins = p.path("plugins")
	p.out.Reset()
	return Install(p.Context(), &p.out, o)
}

// refused installs, and expects an error with a text, the name of what was refused, a hint and exit status 2, and that
// nothing on the machine has changed.
func (p *place) refused(o InstallOptions, want, name string) {
	p.Helper()
	before := snapshot(p, p.top)
	err := p.install(o)
	if err == nil {
		p.Fatalf("it was installed:\n%s", &p.out)
	}
	if text := err.Error(); !strings.Contains(text, want) || !strings.Contains(text, name) {
		p.Errorf("got  %s\nwant %s, and the name %s", text, want, name)
	}
	if hint.Of(err) == "" {
		p.Errorf("no hint: %v", err)
	}
	if got := exit.Code(err); got != exit.StatusRefused {
		p.Errorf("exit status %d: %v", got, err)
	}
	if after := snapshot(p, p.top); !slices.Equal(before, after) {
		p.Errorf("something was written:\n%s\nbefore:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// plugin writes the folder of a plugin that is a script.
func (p *place) plugin(name, version, more string) string {
	p.Helper()
	manifest := strings.Replace(scriptJSON(name, more), "1.0.0", version, 1)
	p.write(name+"/plugin.json", []byte(manifest))
	p.write(name+"/run", []byte("exit 1\n"))
	p.write(name+"/plugin.sum", fmt.Appendf(nil, "%s  plugin.json\n%s  run\n", sumOf(manifest), sumOf("exit 1\n")))
	return p.path(name)
}

// pack writes the archive of a new plugin, signed by a key, unless it is empty.
func (p *place) pack(name, version, key string) string {
	p.Helper()
	file := p.path(name + "-" + version + ".tar.gz")
	if key != "" {
		key = p.path(key)
	}
	if err := Pack(&p.out, PackOptions{Folder: p.plugin(name, version, ""), Out: file, Sign: key}); err != nil {
		p.Fatal(err, hint.Of(err))
	}
	return file
}

// key makes a key, and returns the text of the public one.
func (p *place) key(name string) string {
	p.Helper()
	if err := Key(&p.out, KeyOptions{File: p.path(name), NoPassword: true}); err != nil {
		p.Fatal(err)
	}
	text, err := os.ReadFile(p.path(name + ".pub"))
	if err != nil {
		p.Fatal(err)
	}
	return strings.TrimSpace(strings.Split(string(text), "\n")[1])
}

// scriptJSON is the manifest of a script. more are further keys.
func scriptJSON(name, more string) string {
	return fmt.Sprintf(`{"id": %q, "version": "1.0.0", "protocol": 1, %s "argv": ["sh", "run"], "stages": [{
"name": "echo", "kind": "augment", "inputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T"]}],
"outputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T"]}], "deterministic": true}]}`, name, more)
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func gzipped(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write([]byte(text))
	w.Close()
	return out.String()
}
