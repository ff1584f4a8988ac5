package doctor

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

// looked returns the commands of probes that answer as the shell's words do: $1 is the probe, $2 its argument. The file
// machine.json of the working folder is the answer about this machine.
func looked(t *testing.T, script string, cards ...gpu.Card) []string {
	t.Helper()
	i := &gputest.Inventory{
		Version: gpu.Driver{Version: "580.1", CUDA: "13.0"}, Cards: cards,
		Links: map[[2]int]gpu.Link{{0, 1}: {NVLinks: 18, Peer: true}},
	}
	if len(cards) == 0 {
		i.Version = gpu.Driver{Absent: "no driver"}
	}
	m, err := gpu.Look(i)
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(map[string]any{"value": m})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "machine.json")
	if err := os.WriteFile(file, value, 0o666); err != nil {
		t.Fatal(err)
	}
	return []string{"/bin/sh", "-c", "machine=" + file + "; case $1 in " + script + " esac", "probe"}
}

// The probes of a machine on which everything is found, and of one on which nothing is.
const (
	all = `gpus) cat $machine;; libraries) echo "{\"value\": [$(for l in $2; do printf '%s{"Path": "/lib/%s"}' "$c" $l; c=,; done)]}";; onnxruntime*) echo '{"value": {"Path": "libonnxruntime.so", "Version": "1.29.0"}}';; nvrtc) echo '{"value": {"Path": "/lib/libnvrtc.so.13", "Version": "13.0"}}';; nccl) echo '{"value": {"Path": "/lib/libnccl.so.2", "Version": "2.28.9"}}';;`
	few = `gpus) cat $machine;; libraries) echo "{\"value\": [$(for l in $2; do printf '%s{"Problem": "%s: cannot open"}' "$c" $l; c=,; done)]}";; onnxruntime*) echo '{"error": "no ONNX Runtime", "hint": "fetch it"}';;`
)

func placing(r place.Request) func(gpu.Machine) (place.Placement, error) {
	return func(m gpu.Machine) (place.Placement, error) { return place.Decide(r, m) }
}

// texts are the findings of a state, without the numbers of this machine.
func texts(r *Report, state State) []string {
	var out []string
	for _, s := range r.Sections {
		for _, f := range s.Findings {
			if f.State == state && s.Title != "machine" && s.Title != "program" {
				out = append(out, strings.TrimSpace(s.Title+": "+f.Text+" "+f.Hint))
			}
		}
	}
	return out
}

func TestGPUs(t *testing.T) {
	cards := gputest.Cards(2, 24576*gpu.MB)
	cards[0].Used, cards[0].Free = 1024*gpu.MB, 23552*gpu.MB
	cards[0].Utilization.GPU, cards[0].Processes = 0.5, []gpu.Process{{PID: 1}, {PID: 2}}
	cards[1].Utilization = nil
	r := Examine(t.Context(), Config{
		Command: looked(t, all, cards...), Version: "v1",
		Place: placing(place.Request{Data: "0", Model: "1", Isolate: true, ModelLimit: 1 << 30}),
	})
	want := []string{
		"driver: NVIDIA driver 580.1, for CUDA up to 13.0",
		"libraries: ONNX Runtime 1.29.0: libonnxruntime.so",
		"libraries: libcuda.so.1: /lib/libcuda.so.1", "libraries: libcudart.so.13: /lib/libcudart.so.13",
		"libraries: libcublasLt.so.13: /lib/libcublasLt.so.13", "libraries: libcublas.so.13: /lib/libcublas.so.13",
		"libraries: libcurand.so.10: /lib/libcurand.so.10", "libraries: libcufft.so.12: /lib/libcufft.so.12",
		"libraries: libcudnn.so.9: /lib/libcudnn.so.9",
		"libraries: NVRTC 13.0: /lib/libnvrtc.so.13",
		"libraries: NCCL 2.28.9: /lib/libnccl.so.2",
		"GPUs: GPU 0 (Fake GPU, GPU-a0000000-0000-0000-0000-000000000000) at 0000:10:00.0, compute capability 9.0",
		"GPUs: GPU 0: 1024 MB used, 23552 MB free of 24576 MB, 50 % busy, 2 processes; recommended limits: 8110 MB " +
			"for data, 16465 MB for the model",
		"GPUs: GPU 1 (Fake GPU, GPU-b0000001-0000-0000-0000-000000000000) at 0000:11:00.0, compute capability 9.0",
		"GPUs: GPU 1: 0 MB used, 24576 MB free of 24576 MB; recommended limits: 8110 MB for data, 16465 MB for the " +
			"model",
		"GPUs: GPU 0 and GPU 1 are connected by 18 NVLinks, with peer access",
		"placement: plugins on GPU 0 (at most 8110 MB), the model on GPU 1 (at most 1024 MB)",
	}
	if got := texts(r, OK); !r.Works || !slices.Equal(got, want) {
		t.Errorf("works %v:\n%s\nwant\n%s", r.Works, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var text, again bytes.Buffer
	if err := r.Write(&text); err != nil ||
		!strings.HasSuffix(text.String(), "training with these settings can work on this machine\n") ||
		!strings.Contains(text.String(), "\n  ✓ libcudnn.so.9: ") {
		t.Errorf("%v\n%s", err, text.String())
	}
	var back Report
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.Write(&again); again.String() != text.String() || back.GPUs[0].OptimalDataBytes != 8110*gpu.MB ||
		back.Placement.Model.LimitBytes != 1<<30 || back.Links[0].NVLinks != 18 {
		t.Errorf("JSON loses something: %s", data)
	}
}

// TestLibrariesInFolderOfONNXRuntime: on a GPU, doctor looks for the library with CUDA, and finds its libraries in the
// same folder if the loader does not.
func TestLibrariesInFolderOfONNXRuntime(t *testing.T) {
	dir := t.TempDir()
	for _, name := range append([]string{cudaProvider}, cudaLibraries[1:]...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// of which it asks for no more than libcuda
	script := `libraries) echo "{\"value\": [{\"Path\": \"/lib/$2\"}]}";; ` +
		`onnxruntime-cuda) echo '{"value": {"Path": "` + dir +
		`/libonnxruntime.so", "Version": "1.29.0"}}';; gpus) cat $machine;; nvrtc) echo "{\"error\": \"no NVRTC next to $2\", \"hint\": \"fetch it\"}";;`
	c := Config{Command: looked(t, script, gputest.Cards(1, 24576*gpu.MB)...), Place: placing(place.Request{})}
	r := Examine(t.Context(), c)
	found := strings.Join(texts(r, OK), "\n")
	if !r.Works || !strings.Contains(found, "libraries: libcudnn.so.9: "+dir+"/libcudnn.so.9") {
		t.Errorf("works %v:\n%s\n%s", r.Works, found, strings.Join(texts(r, Bad), "\n"))
	}
	without := "libraries: no CUDA compiler: training graphs run as exported, without fused kernels: no NVRTC next " +
		"to " +
		dir +
		"/libonnxruntime.so fetch it"
	if notes := texts(r, Note); !slices.Contains(notes, without) {
		t.Errorf("notes\n%s\nwithout %s", strings.Join(notes, "\n"), without)
	}
	c.Place, c.OnCPU = placing(place.Request{Device: place.CPU}), true
	if r := Examine(t.Context(), c); r.Works {
		t.Error("training on the CPU looks for the library with CUDA")
	}
}

// TestNCCL: doctor names NCCL where there are several GPUs; a machine with one does not need it.
func TestNCCL(t *testing.T) {
	script := strings.Replace(all, "nccl) echo '{\"value\": {", `nccl) echo '{"error": "no NCCL", "hint": "fetch it", "value": {`, 1)
	const note = "libraries: no NCCL, which is needed only to train one model on several GPUs: no NCCL fetch it"
	for _, gpus := range []int{1, 2} {
		c := Config{
			Command: looked(t, script, gputest.Cards(gpus, 24576*gpu.MB)...), Place: placing(place.Request{}),
		}
		r := Examine(t.Context(), c)
		if got := slices.Contains(texts(r, Note), note); !r.Works || got != (gpus > 1) {
			t.Errorf("%d GPUs: works %v, notes\n%s", gpus, r.Works, strings.Join(texts(r, Note), "\n"))
		}
		if strings.Contains(strings.Join(texts(r, OK), "\n"), "NCCL") {
			t.Errorf("%d GPUs: found\n%s", gpus, strings.Join(texts(r, OK), "\n"))
		}
	}
}

// TestBad checks what is a cross: only what keeps training from where it was asked to go.
func TestBad(t *testing.T) {
	const crash = `gpus) echo dying >&2; kill -SEGV $$;; *) echo '{"value": {}}';;`
	const garbage = `gpus) echo nonsense;; *) echo '{"value": {}}';;`
	cards := gputest.Cards(1, 24576*gpu.MB)
	for _, tt := range []struct {
		name   string
		script string
		cards  []gpu.Card
		place  func(gpu.Machine) (place.Placement, error)
		onCPU  bool
		want   []string // beginnings
	}{
		{"no GPU", all, nil, placing(place.Request{}), false, nil},
		{
			"no GPU, but asked for", all, nil, placing(place.Request{Device: config.CUDA}), false,
			[]string{"placement: --device cuda: no GPU found: no driver --device cpu uses the CPU"},
		},
		{"nothing there", few, nil, placing(place.Request{}), false, []string{"libraries: no ONNX Runtime fetch it"}},
		{"GPU without libraries", few, cards, placing(place.Request{}), false, []string{
			"libraries: no ONNX Runtime", "libraries: libcuda.so.1: cannot open install CUDA 13",
			"libraries: libcudart.so.13", "libraries: libcublasLt.so.13", "libraries: libcublas.so.13",
			"libraries: libcurand.so.10", "libraries: libcufft.so.12", "libraries: libcudnn.so.9",
		}},
		{
			"GPU passed over", few, cards, placing(place.Request{Device: place.CPU}), true,
			[]string{"libraries: no ONNX Runtime"},
		},
		{
			"driver crashes", crash, nil, placing(place.Request{}), false,
			[]string{"driver: the probe process crashed: signal: segmentation fault"},
		},
		{"driver crashes, CPU asked for", crash, nil, placing(place.Request{Device: place.CPU}), true, nil},
		{"no answer", garbage, nil, placing(place.Request{}), false, []string{"driver: no answer: invalid character"}},
		{"no program", "", nil, placing(place.Request{}), false, []string{
			"driver: no answer: unexpected end of JSON input", "libraries: no answer: unexpected end of JSON input",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Examine(t.Context(),
				Config{Command: looked(t, tt.script, tt.cards...), Place: tt.place, OnCPU: tt.onCPU})
			got := texts(r, Bad)
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) || r.Works != (tt.want == nil) ||
				r.Bad() != len(tt.want) {
				t.Errorf("crosses\n%s\nwant\n%s\nworks %v", strings.Join(got, "\n"), strings.Join(tt.want, "\n"),
					r.Works)
			}
		})
	}
}

// TestLines: each line of a finding stands below its mark, and its hint below them.
func TestLines(t *testing.T) {
	r := &Report{Sections: []Section{{"settings", []Finding{{Bad, "other settings:\n  lr: 0.1 -> 0.5", "allow it"}}}}}
	var out bytes.Buffer
	const want = "settings\n  ✗ other settings:\n      lr: 0.1 -> 0.5\n    hint: allow it\n"
	if err := r.Write(&out); err != nil || out.String() != want {
		t.Errorf("%v, wrote\n%s", err, out.String())
	}
}

func TestNVIDIACards(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	root := fstest.MapFS{
		"sys/bus/pci/devices/0000:1b:00.0/vendor": file("0x10de"),
		"sys/bus/pci/devices/0000:1b:00.0/class":  file("0x030200"),
		// its sound
		"sys/bus/pci/devices/0000:1b:00.1/vendor": file("0x10de"),
		"sys/bus/pci/devices/0000:1b:00.1/class":  file("0x040300"),
		"sys/bus/pci/devices/0000:02:00.0/vendor": file("0x1a03"),
		"sys/bus/pci/devices/0000:02:00.0/class":  file("0x030000"),
		"sys/bus/pci/devices/0000:03:00.0/vendor": file("0x10de"),
		"sys/bus/pci/devices/0000:03:00.0/class":  file("0x030000"),
	}
	if n := nvidiaCards(root); n != 2 {
		t.Errorf("%d cards", n)
	}
	if n := nvidiaCards(fstest.MapFS{}); n != 0 {
		t.Errorf("%d cards of nothing", n)
	}
}
