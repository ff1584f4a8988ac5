package validate

import (
	"context"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/command/doctor"
	"github.com/xtts-host/xtts-host/host/command/preflight"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/train/memory"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// worldOf returns the ranks that training would start on this machine for a list of GPUs, as rank 0 sees them: what is
// tried is its part.
func worldOf(c *config.Config) world.World {
	if n := len(place.ModelGPUs(string(c.ModelGPU))); n > 1 {
		return world.World{Size: n, LocalSize: n, Machine: world.Machine{Size: n}}
	}
	return c.World
}

// placements returns those of all ranks of the machine.
func (m *Machine) placements(r place.Request) (all []place.Placement, err error) {
	for local := range max(1, r.Ranks.LocalSize) {
		own := r
		own.Ranks.Rank, own.Ranks.Local = local, local
		p, err := m.Place(own, m.machine())
		if err != nil && local > 0 {
			return nil, hint.Errorf(hint.Of(err), "rank %d: %w", local, err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// library says whether NCCL is there, without which several GPUs do not train one model.
func (m *Machine) library(context.Context) (string, error) {
	for _, f := range m.findings("libraries") {
		if strings.HasPrefix(f.Text, "NCCL ") && f.State == doctor.OK {
			return f.Text, nil
		}
		if strings.HasPrefix(f.Text, "no NCCL") {
			return "", hint.Errorf(f.Hint, "%s", f.Text)
		}
	}
	return "", hint.Errorf(hint.Command("fetch nccl fetches NCCL"), "no NCCL")
}

// rankChecks say what is known of the other ranks.
func (v *validation) rankChecks() []preflight.Check {
	if v.draft.Config.World.Alone() {
		return nil
	}
	return []preflight.Check{{Name: "other ranks", Needs: []string{checkMemory}, Try: v.tryRanks}}
}

// need is the memory that rank 0 took of its GPU, or what is known of it if the driver does not report that.
func (v *validation) need() int64 {
	p := v.draft.MemoryFor(v.draft.Slots)
	return max(v.peak, int64(p.Fixed()+memory.Libraries))
}

// tryRanks compares what rank 0 needs of its GPU with the room of the others, and says what was not tried.
func (v *validation) tryRanks(context.Context) (string, error) {
	all, err := v.looked.placements(v.looked.Request)
	if err != nil {
		return "", exit.Refused(err)
	}
	need := v.need()
	var rooms, names []string
	for rank, p := range all[1:] {
		free := v.looked.free(p.Model.GPU)
		if free < need {
			return "", hint.Errorf("end what else uses it ("+hint.Command("doctor shows every GPU")+"), name another "+
				"GPU, or try a smaller --batch-size",
				"%w: rank %d: GPU %d has %d MiB free, and rank 0 needs %d of GPU %d", ort.ErrOutOfMemory, rank+1,
				p.Model.GPU.Index, free/gpu.MB, need/gpu.MB, all[0].Model.GPU.Index)
		}
		names = append(names, fmt.Sprintf("GPU %d", p.Model.GPU.Index))
		rooms = append(rooms, fmt.Sprintf("rank %d on GPU %d, of which %d MiB are free", rank+1, p.Model.GPU.Index,
			free/gpu.MB))
	}
	return fmt.Sprintf("%s; rank 0 needs %d MiB of GPU %d\nnot tried: to start the other ranks, the model on %s, sums "+
			"with NCCL, and whether memory and cores of this machine are enough for %d ranks",
			strings.Join(rooms, "; "), need/gpu.MB, all[0].Model.GPU.Index, strings.Join(names, " and "), len(all)),
		nil
}

// free is the memory of a GPU that was free before anything was tried.
func (m *Machine) free(d gpu.Device) int64 {
	for _, g := range m.Report.GPUs {
		if g.UUID == d.UUID {
			return g.Free
		}
	}
	return 0
}
