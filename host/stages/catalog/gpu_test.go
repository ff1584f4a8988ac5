package catalog

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestOnGPU scans a plugin with a separate program for a GPU, built or not built.
func TestOnGPU(t *testing.T) {
	manifest := pluginJSON("gain",
		fmt.Sprintf(`"executable": {%q: "prog", %q: "prog_cuda"}`, platform, platform+"_cuda"))
	sums := sumOf(manifest, "plugin.json") + sumOf("x", "prog")
	for _, c := range []struct {
		name    string
		files   map[string]string
		state   State
		program string
	}{
		{
			"both", map[string]string{"prog_cuda": "y", "plugin.sum": sums + sumOf("y", "prog_cuda")}, Verified,
			"prog_cuda",
		},
		{"both, without sums", map[string]string{"prog_cuda": "y"}, Unverified, "prog_cuda"},
		{"not built", map[string]string{"plugin.sum": sums}, Verified, "prog"},
		{"not listed", map[string]string{"prog_cuda": "y", "plugin.sum": sums}, Modified, ""},
		{"changed", map[string]string{"prog_cuda": "z", "plugin.sum": sums + sumOf("y", "prog_cuda")}, Modified, ""},
		{"leads out", map[string]string{"prog_cuda": "-> /bin/sh"}, Broken, ""},
		{"leads nowhere", map[string]string{"prog_cuda": "-> prog_gone"}, Unverified, "prog"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "gain", "plugin.json"), manifest)
			write(t, filepath.Join(dir, "gain", "prog"), "x")
			for name, content := range c.files {
				write(t, filepath.Join(dir, "gain", name), content)
			}
			entries, err := Scan(dir)
			if err != nil {
				t.Fatal(err)
			}
			e := entries[0]
			gpu := e.OnGPU()
			if e.State != c.state {
				t.Fatalf("%s: %s, want %s", e.State, e.Reason, c.state)
			}
			if c.program == "" {
				if len(e.Command)+len(gpu.Command) > 0 {
					t.Errorf("it can be started: %v, %v", e.Command, gpu.Command)
				}
				return
			}
			if filepath.Base(e.Command[0]) != "prog" || filepath.Base(gpu.Command[0]) != c.program ||
				(gpu.Sum == "") != (e.State == Unverified) ||
				(gpu.Sum == e.Sum) != (c.program == "prog" || e.Sum == "") {
				t.Errorf("%v %s and on a GPU %v %s", e.Command, e.Sum, gpu.Command, gpu.Sum)
			}
		})
	}
}

// TestResolveMissingGPUProgram: a plugin without the program for a GPU that it names is refused only if one of its
// stages would get a GPU.
func TestResolveMissingGPUProgram(t *testing.T) {
	dir := t.TempDir()
	both := fmt.Sprintf(`"executable": {%q: "prog", %q: "prog_cuda"}`, platform, platform+"_cuda")
	for id, program := range map[string]string{"missing": both, "built": both, "one": executable("prog")} {
		json := strings.Replace(pluginJSON(id, program), `"deterministic"`, `"gpu": "optional", "deterministic"`, 1)
		json = strings.Replace(json, `"stages": [`,
			`"stages": [{"name": "plain", "kind": "augment", "inputs": [{"name": "x", "dtype": "f32", "shape": ["B", "T"]}],
			"outputs": [{"name": "x", "dtype": "f32", "shape": ["B", "T"]}], "deterministic": true}, `, 1)
		write(t, filepath.Join(dir, id, "plugin.json"), json)
		write(t, filepath.Join(dir, id, "prog"), "x")
	}
	write(t, filepath.Join(dir, "built", "prog_cuda"), "y")
	entries, err := Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := `pipeline: instance "louder": plugin missing is given the data GPU, but its program for a GPU is missing: ` +
		filepath.Join(entries[1].Dir, "prog_cuda")
	for _, c := range []struct {
		stage, port string
		gpu         bool
		want        string
	}{
		{"missing/gain", "waveform", true, want},
		{"missing/gain", "waveform", false, ""},
		{"missing/plain", "x", true, ""},
		{"built/gain", "waveform", true, ""},
		{"one/gain", "waveform", true, ""},
	} {
		types := testTypes()
		types.DataGPU = c.gpu
		louder := inst("louder", c.stage, m(c.port, "waveform"), m(c.port, "waveform"))
		_, err := Resolve([]manifest.StageInstance{louder, target, reference}, append(testEntries(), entries...), types)
		if c.want == "" && err != nil ||
			c.want != "" && (err == nil || err.Error() != c.want || !strings.Contains(hint.Of(err), "--data-gpu cpu")) {
			t.Errorf("%s, data GPU %v: %v, hint %q", c.stage, c.gpu, err, hint.Of(err))
		}
	}
}
