package fetch

import (
	"archive/zip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pip is a python3 that answers like pip: it "downloads" a wheel, which has the libraries of that name and one more,
// or fails.
func pip(t *testing.T, libraries ...string) {
	t.Helper()
	folder := t.TempDir()
	out, err := os.Create(filepath.Join(folder, "made.whl"))
	must(t, err)
	archive := zip.NewWriter(out)
	for _, name := range append(libraries, "other.so") {
		f, err := archive.Create("nvidia/lib/" + name)
		must(t, err)
		_, err = f.Write([]byte("content of " + name))
		must(t, err)
	}
	must(t, archive.Close())
	must(t, out.Close())
	script := `#!/bin/sh
case "$*" in *--version*) exit 0;; esac
while [ $# -gt 0 ]; do
	case $1 in --dest) dest=$2;; --requirement) list=$2;; --require-hashes) hashes=1;; esac
	shift
done
cat "$list" >>` + folder + `/asked
[ "$hashes" ] && [ ! -e ` + folder + `/fail ] && cp ` + folder + `/made.whl "$dest"/nvidia.whl`
	must(t, os.WriteFile(filepath.Join(folder, "python3"), []byte(script), 0o755))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("PIP", folder)
}

func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestRun fetches the compiler, asks for a pinned hash, leaves nothing else behind, and fetches nothing the second
// time.
func TestRun(t *testing.T) {
	pip(t, nvrtc.files...)
	folder := filepath.Join(t.TempDir(), "new", "folder")
	for range 2 {
		var out strings.Builder
		must(t, Run(t.Context(), &out, Request{Folder: folder, What: NVRTC}))
		if got := names(t, folder); !slices.Equal(got, nvrtc.files) {
			t.Fatalf("the folder has %q\n%s", got, out.String())
		}
	}
	content, err := os.ReadFile(filepath.Join(folder, nvrtc.files[0]))
	must(t, err)
	if string(content) != "content of "+nvrtc.files[0] {
		t.Errorf("a library has %q", content)
	}
	asked, err := os.ReadFile(filepath.Join(os.Getenv("PIP"), "asked"))
	must(t, err)
	if want := nvrtc.name + "==" + nvrtc.version + " --hash=sha256:" + nvrtc.sha256 + "\n"; string(asked) != want {
		t.Errorf("pip was asked for %q, want %q once", asked, want)
	}
}

// TestFails: after an error nothing is left, and what was there stays.
func TestFails(t *testing.T) {
	pip(t, nvrtc.files[0]) // the wheel lacks the second library
	folder := t.TempDir()
	err := Run(t.Context(), new(strings.Builder), Request{Folder: folder, What: NVRTC})
	if err == nil || err.Error() != nvrtc.name+" "+nvrtc.version+": the wheel has no "+nvrtc.files[1] {
		t.Errorf("a wheel without the library: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(os.Getenv("PIP"), "fail"), nil, 0o666))
	err = Run(t.Context(), new(strings.Builder), Request{Folder: folder, What: NVRTC})
	if err == nil || !strings.HasPrefix(err.Error(), "pip could not fetch "+nvrtc.name) {
		t.Errorf("a failing pip: %v", err)
	}
	if got := names(t, folder); len(got) > 1 {
		t.Errorf("left are %q", got)
	}
}

// TestMissing: a library that is there is kept.
func TestMissing(t *testing.T) {
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, nvrtc.files[1]), nil, 0o666))
	missing, err := nvrtc.missing(files.At(folder))
	if err != nil || !slices.Equal(missing, nvrtc.files[:1]) {
		t.Errorf("missing %q, %v", missing, err)
	}
}

// TestNCCL: it is fetched for several GPUs, or alone.
func TestNCCL(t *testing.T) {
	pip(t, nccl.files...)
	all := wheels
	t.Cleanup(func() { wheels = all })
	wheels = []wheel{nccl}
	wheels[0].loaded = "" // this machine may have one
	for name, tt := range map[string]struct {
		what string
		gpus int
		want string
	}{
		"no GPU":      {All, 0, "not needed, it is for several GPUs; xtts-host fetch nccl fetches it"},
		"one GPU":     {All, 1, "not needed, it is for several GPUs; xtts-host fetch nccl fetches it"},
		"two GPUs":    {All, 2, "fetching"},
		"alone":       {NCCL, 0, "fetching"},
		"another one": {NVRTC, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			folder := t.TempDir()
			must(t, Request{Folder: folder, What: tt.what}.run(t.Context(), &out, tt.gpus))
			var want string
			if tt.want != "" {
				want = "nvidia-nccl-cu13 2.28.9: " + tt.want + "\n"
			}
			if got := out.String(); got != want+"the libraries are in "+folder+"\n" {
				t.Errorf("%s", got)
			}
			if got := names(t, folder); slices.Equal(got, nccl.files) != (tt.want == "fetching") {
				t.Errorf("the folder has %q", got)
			}
		})
	}
}
