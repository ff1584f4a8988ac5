package place

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/settings/world"
)

// TestRanks: each rank of a machine has a GPU of its own, or is refused.
func TestRanks(t *testing.T) {
	cards := func(n int) (m gpu.Machine) {
		for i := range n {
			m.Cards = append(m.Cards, gpu.Card{Device: gpu.Device{
				Index: i, UUID: "GPU-" + strings.Repeat(string(rune('a'+i)), 8), Memory: 16 << 30,
			}})
		}
		return m
	}
	one := "2"
	for _, c := range []struct {
		name        string
		model, data string
		visible     *string
		local, size int
		gpus        int
		want        int // index of the model's GPU; -1 for the CPU
		dataAt      int // -1 for the CPU
		refused     string
	}{
		{name: "each its own", local: 1, size: 2, gpus: 2, want: 1, dataAt: -1},
		{name: "auto", model: "auto", data: "auto", local: 1, size: 2, gpus: 3, want: 1, dataAt: 2},
		{name: "no GPU is left for data", model: "auto", data: "auto", local: 1, size: 2, gpus: 2, want: 1, dataAt: -1},
		{name: "a list", model: "2,0", local: 1, size: 2, gpus: 3, want: 0, dataAt: -1},
		{name: "a list with a data GPU", model: "1,0", data: "2", local: 0, size: 2, gpus: 3, want: 1, dataAt: 2},
		{name: "bound by the launcher", visible: &one, local: 1, size: 2, gpus: 3, want: 2, dataAt: -1},
		{name: "without GPUs", local: 1, size: 2, want: -1, dataAt: -1},
		{name: "too many ranks", local: 2, size: 3, gpus: 2, refused: "rank 2 of this machine has no GPU"},
		{name: "one for all", model: "0", data: "cpu", local: 0, size: 2, gpus: 2, refused: "a GPU of its own"},
		{name: "twice", model: "0,0", local: 0, size: 2, gpus: 2, refused: "named twice"},
		{
			name: "twice by other names", model: "0,GPU-aa", local: 0, size: 2, gpus: 2,
			refused: "GPU GPU-aa is named twice",
		},
		{name: "not there", model: "0,7", local: 0, size: 2, gpus: 2, refused: "--model-gpu 7: no GPU 7"},
		{name: "too short", model: "0,1", local: 2, size: 3, gpus: 3, refused: "names 2 GPUs, and this machine has 3"},
		{name: "too long", model: "0,1,2", local: 0, size: 2, gpus: 3, refused: "names 3 GPUs, and this machine has 2"},
		{name: "a gap", model: "0,,1", local: 0, size: 3, gpus: 3, refused: "a name is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Decide(Request{
				Model: c.model, Data: c.data, Visible: c.visible,
				Ranks: world.World{Rank: c.local, Size: c.size, Local: c.local, LocalSize: c.size},
			}, cards(c.gpus))
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			at := func(r Role) int {
				if r.OnCPU() {
					return -1
				}
				return r.GPU.Index
			}
			if at(p.Model) != c.want || at(p.Data) != c.dataAt {
				t.Errorf("model on %d, data on %d", at(p.Model), at(p.Data))
			}
		})
	}
	first := "0,2"
	for index, visible := range []*string{&first, &one} { // the first rank of the machine uses the GPU of the plugins
		p, err := Decide(Request{Data: "0", Model: "2", Visible: visible, Ranks: world.World{
			Rank: index, Size: 2, Machine: world.Machine{Index: index, Size: 2},
		}}, cards(3))
		if err != nil || p.Data.GPU.Index != 0 || p.Model.GPU.Index != 2 {
			t.Errorf("rank %d sees the GPUs %s: %+v, %v", index, *visible, p, err)
		}
	}
	if _, err := Decide(Request{Data: "0", Model: "2", Visible: &one}, cards(3)); err == nil {
		t.Error("a GPU that is hidden is used")
	}
	if _, err := Decide(Request{Model: "0,1"}, cards(2)); err == nil ||
		!strings.Contains(err.Error(), "this command computes on one GPU") {
		t.Errorf("a list without ranks: %v", err)
	}
}
