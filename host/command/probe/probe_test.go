package probe

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/nccl"
	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// TestProbe runs the probes in this process.
func TestProbe(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, nvrtc.Library)
	for _, name := range []string{nvrtc.Library, nccl.Name} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("truncated"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, arg string
		want      string // part of the answer
	}{
		{probeGPUs, "", `{"value":{"driver":{`},
		{
			probeLibraries, "libm.so.6 libnowhere.so",
			`/libm.so.6","Problem":""},{"Path":"","Problem":"libnowhere.so: cannot open`,
		},
		{probeRuntime, "/nowhere.so", `{"error":"ONNX Runtime library /nowhere.so: file does not exist","hint":"`},
		{probeCompiler, broken, `{"error":"load NVRTC: ` + broken + `: file too short","hint":"`},
		{probeNCCL, broken, `{"error":"load NCCL: ` + folder + "/" + nccl.Name + `: file too short","hint":"`},
		{"nonsense", "", `{"error":"no probe \"nonsense\""}`},
	} {
		var out bytes.Buffer
		err := Serve(&out, tt.name, tt.arg)
		if err != nil ||
			!strings.Contains(strings.ReplaceAll(out.String(), `\"`, `"`), strings.ReplaceAll(tt.want, `\"`, `"`)) {
			t.Errorf("%s %s: %s, %v", tt.name, tt.arg, out.String(), err)
		}
	}
}

// TestLibraries: a library that crashes its process does not hide the results of the others.
func TestLibraries(t *testing.T) {
	const script = `case $2 in good) echo '{"value": [{"Path": "/lib/good"}]}';; *) echo dying >&2; kill -SEGV $$;; esac`
	c := Command{"/bin/sh", "-c", script, "probe"}
	want := []Found{{Path: "/lib/good"}, {Problem: "bad: the probe process crashed: signal: segmentation fault: dying"}}
	if got := c.Libraries(t.Context(), "good", "bad"); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRelay copies in this process. TestScripts of cmd/xtts-host copies in another process, TestFakeGPU there through a
// GPU.
func TestRelay(t *testing.T) {
	r, err := ring.Create(2, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rand.NewChaCha8([32]byte{}).Read(r.Slot(0))
	relay := func(what Relay) (Relayed, error) {
		arg, err := json.Marshal(relayRequest{what, r.Slots(), r.SlotSize()})
		if err != nil {
			t.Fatal(err)
		}
		fd, err := syscall.Dup(int(r.File().Fd()))
		if err != nil {
			t.Fatal(err)
		}
		return serveRelay(string(arg), os.NewFile(uintptr(fd), "ring"))
	}
	done, err := relay(Relay{From: 0, To: 1, Bytes: 900})
	if err != nil || done.Device != (gpu.Device{}) {
		t.Errorf("%+v, %v", done, err)
	}
	if to := r.Slot(1); !bytes.Equal(to[:900], r.Slot(0)[:900]) || !bytes.Equal(to[900:], make([]byte, len(to)-900)) {
		t.Error("not the 900 bytes that were asked for")
	}
	if done, err := relay(Relay{From: 0, To: 1, Bytes: 900, UUID: "GPU-none"}); err == nil {
		t.Errorf("a GPU that is not there: %+v", done)
	}
	if _, err := serveRelay("{", nil); err == nil {
		t.Error("half a request is taken")
	}
}
