package catalog

import (
	"fmt"
	"path/filepath"
	"testing"
)

// TestOnGPU scans a plugin with a program of its own for a GPU, built or not.
func TestOnGPU(t *testing.T) {
	manifest := pluginJSON("gain", fmt.Sprintf(`"executable": {%q: "prog", %q: "prog_cuda"}`, platform, platform+"_cuda"))
	sums := sumOf(manifest, "plugin.json") + sumOf("x", "prog")
	for _, c := range []struct {
		name    string
		files   map[string]string
		state   State
		program string
	}{
		{"both", map[string]string{"prog_cuda": "y", "plugin.sum": sums + sumOf("y", "prog_cuda")}, Verified, "prog_cuda"},
		{"both, without sums", map[string]string{"prog_cuda": "y"}, Unverified, "prog_cuda"},
		{"not built", map[string]string{"plugin.sum": sums}, Verified, "prog"},
		{"not listed", map[string]string{"prog_cuda": "y", "plugin.sum": sums}, Modified, ""},
		{"changed", map[string]string{"prog_cuda": "z", "plugin.sum": sums + sumOf("y", "prog_cuda")}, Modified, ""},
		{"leads out", map[string]string{"prog_cuda": "-> /bin/sh"}, Unverified, "prog"},
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
			if filepath.Base(e.Command[0]) != "prog" || filepath.Base(gpu.Command[0]) != c.program || (gpu.Sum == "") != (e.State == Unverified) ||
				(gpu.Sum == e.Sum) != (c.program == "prog" || e.Sum == "") {
				t.Errorf("%v %s and on a GPU %v %s", e.Command, e.Sum, gpu.Command, gpu.Sum)
			}
		})
	}
}
