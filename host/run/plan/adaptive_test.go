package plan

import (
	"runtime"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// adaptiveDraft is a draft with one plugin, whose ring has been sized.
func adaptiveDraft(t *testing.T, accumulation string, flags ...string) *Draft {
	t.Helper()
	d := NewDraft(configtest.Parse(t, flags...), nil)
	d.Bundle = &ortgraphs.Bundle{Manifest: &manifest.Bundle{Accumulation: accumulation}}
	d.Stages.Resolved = &catalog.Resolved{Plugins: []catalog.Entry{{Manifest: &manifest.Plugin{ID: "features"}}}}
	d.Ring.Prefetch = 8
	return d
}

func TestPlanAdaptive(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for _, tt := range []struct {
		name, accumulation string
		flags              []string
		change             func(*Draft)
		slots, workers     int
		returns            bool
	}{
		{"on the CPU", "exact", nil, nil, 2, max(3, cores), true},
		{"a small ring", "exact", []string{"--buffer-size", "1"}, nil, 1, max(3, cores), true},
		{
			"all batches of a step", manifest.Weighted, []string{"--accumulate", "5", "--num-workers", "90"}, nil, 5,
			91, true,
		},
		{
			"many processes", "exact", []string{"--plugin-workers", "features=200"}, nil, 2, 202, true,
		},
		{"a model GPU", "exact", []string{"--num-workers", "2"}, func(d *Draft) {
			d.Placement.Model.GPU = gpu.Device{UUID: "GPU-1"}
		}, 2, max(3, cores), false},
		{"a data GPU", "exact", nil, func(d *Draft) {
			d.Placement.Data.GPU = gpu.Device{UUID: "GPU-1"}
		}, 2, max(3, cores), false},
	} {
		d := adaptiveDraft(t, tt.accumulation, append(tt.flags, "--adaptive")...)
		if tt.change != nil {
			tt.change(d)
		}
		if err := d.planAdaptive(); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if a := d.Adaptive; a.Slots != tt.slots || a.Workers != tt.workers || a.Returns != tt.returns ||
			d.Ring.Prefetch != tt.slots || d.MostDecoders() != max(d.Decoders(), cores) {
			t.Errorf("%s: %+v, prefetch %d, up to %d decoders", tt.name, a, d.Ring.Prefetch, d.MostDecoders())
		}
	}
	d := adaptiveDraft(t, "exact")
	if err := d.planAdaptive(); err != nil || d.Adaptive != nil || d.MostDecoders() != d.Decoders() {
		t.Errorf("without --adaptive: %+v, %v", d.Adaptive, err)
	}
}

// TestAdaptiveRanks: ranks that share a ring are refused, those of other machines are not.
func TestAdaptiveRanks(t *testing.T) {
	for _, machine := range []int{1, 2} {
		d := adaptiveDraft(t, "exact", "--adaptive")
		d.World.Size, d.World.Machine.Size = 2, machine
		err := d.planAdaptive()
		if machine == 1 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "--adaptive: the 2 ranks of this machine share a ring") ||
			!strings.Contains(hint.Of(err), "XTTS_RANKS_MACHINE") {
			t.Errorf("%v, hint %q", err, hint.Of(err))
		}
	}
}
