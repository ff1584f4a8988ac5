package place

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// machine is one of n equal cards of 24 GB.
func machine(t *testing.T, n int, change ...func(*gputest.Inventory)) gpu.Machine {
	t.Helper()
	i := &gputest.Inventory{Version: gpu.Driver{Version: "580", CUDA: "13.0"}, Cards: gputest.Cards(n, 24576*gpu.MB)}
	if n == 0 {
		i.Version = gpu.Driver{Absent: "NVIDIA's driver is not loaded"}
	}
	for _, c := range change {
		c(i)
	}
	m, err := gpu.Look(i)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const cpu = -1

// Values of CUDA_VISIBLE_DEVICES that hide every card, and all but the second.
var none, second = "", "1"

const limits = 8192 * gpu.MB

// placement is a request on a machine of equal cards, with its outcome: indices, or an error and its hint.
type placement struct {
	name        string
	cards       int
	request     Request
	data, model int
	reason      string
	err, hint   string
}

// byDevice are requests without GPUs for the roles, or with only one.
var byDevice = []placement{
	// Neither flag.
	{"no GPU", 0, Request{}, cpu, cpu, "no GPU found: NVIDIA's driver is not loaded", "", ""},
	{"one GPU", 1, Request{}, cpu, 0, "the first GPU", "", ""},
	{"two GPUs", 2, Request{Device: Auto}, cpu, 0, "the first GPU", "", ""},
	{
		"cuda without GPU", 0, Request{Device: config.CUDA}, 0, 0, "",
		"--device cuda: no GPU found: NVIDIA's driver is not loaded", "xtts-host doctor says what is missing",
	},
	{"cuda", 1, Request{Device: config.CUDA}, cpu, 0, "the first GPU", "", ""},
	{
		"isolation without GPU", 0, Request{Isolate: true}, 0, 0, "", "--enable-memory-isolation: no GPU found",
		"omit it",
	},
	{"all hidden", 2, Request{Visible: &none}, cpu, cpu, "CUDA_VISIBLE_DEVICES= hides every GPU", "", ""},
	{"first hidden", 2, Request{Visible: &second}, cpu, 1, "the first GPU", "", ""},

	// The CPU.
	{"cpu", 2, Request{Device: CPU}, cpu, cpu, "--device cpu", "", ""},
	{
		"cpu with flags", 2, Request{Device: CPU, Data: "0", Model: "1"}, 0, 0, "", "--device cpu does not go with",
		"omit --device",
	},
	{
		"cpu with isolation", 2, Request{Device: CPU, Isolate: true}, 0, 0, "", "--device cpu does not go with",
		"omit --device",
	},
	{
		"model on the cpu", 2, Request{Data: "0", Model: "cpu"}, 0, 0, "", "--model-gpu cpu: it cannot be cpu",
		"--device cpu",
	},

	// One flag.
	{"data alone", 2, Request{Data: "0"}, 0, 0, "", "--data-gpu 0: --model-gpu is missing", "--model-gpu N"},
	{"model alone", 2, Request{Model: "1"}, 0, 0, "", "--model-gpu 1: --data-gpu is missing", "--data-gpu cpu keeps " +
		"them on the CPU"},
	{"data on the CPU alone", 1, Request{Data: "cpu"}, 0, 0, "", "--data-gpu cpu: --model-gpu is missing", ""},
}

// byFlags are requests that name a GPU for each role.
var byFlags = []placement{
	{"two", 2, Request{Data: "0", Model: "1"}, 0, 1, "", "", ""},
	{"the other way", 2, Request{Data: "1", Model: "0"}, 1, 0, "", "", ""},
	{"any two of four", 4, Request{Data: "3", Model: "1"}, 3, 1, "", "", ""},
	{"by UUID", 4, Request{Data: "GPU-d0000003-0000-0000-0000-000000000000", Model: "gpu-B"}, 3, 1, "", "", ""},
	{"data on the CPU", 1, Request{Data: "cpu", Model: "0"}, cpu, 0, "", "", ""},
	{"one for both", 1, Request{Data: "0", Model: "0"}, 0, 0, "", "", ""},
	{"two asked of one", 1, Request{Data: "0", Model: "1"}, 0, 0, "", "two GPUs are requested, found 1", "xtts-host " +
		"--data-gpu cpu --model-gpu 0 trains"},
	{
		"two asked of none", 0, Request{Data: "0", Model: "1"}, 0, 0, "",
		"two GPUs are requested, found 0: NVIDIA's driver is not loaded", "--device cpu",
	},
	{
		"one of two visible", 2, Request{Data: "0", Model: "1", Visible: &second}, 0, 0, "",
		"two GPUs are requested, found 1 (CUDA_VISIBLE_DEVICES=1)", "xtts-host --data-gpu cpu --model-gpu 1",
	},
	{
		"model asked of none", 0, Request{Data: "cpu", Model: "0"}, 0, 0, "", "--model-gpu 0: no GPU 0: there is none",
		"doctor",
	},
	{
		"unknown index", 2, Request{Data: "0", Model: "2"}, 0, 0, "",
		"--model-gpu 2: no GPU 2: there are GPU 0 (Fake GPU, GPU-a", "doctor",
	},
	{"ambiguous", 2, Request{Data: "GPU-", Model: "0"}, 0, 0, "", "--data-gpu GPU-: neither an index", "doctor"},
	{
		"hidden", 2, Request{Data: "cpu", Model: "0", Visible: &second}, 0, 0, "",
		"--model-gpu 0: CUDA_VISIBLE_DEVICES=1 hides GPU 0", "unset the variable",
	},
}

// byAuto are requests that leave the choice of a GPU to the host.
var byAuto = []placement{
	{
		"auto of four", 4, Request{Data: "auto", Model: "auto"}, 0, 1,
		"auto: of 4 visible GPUs, 0 (idle, 24576 MB) and 1 (idle, 24576 MB) are connected across NUMA nodes, without " +
			"peer access",
		"", "",
	},
	{
		"auto of one", 1, Request{Data: "auto", Model: "auto"}, 0, 0, "", "two GPUs are requested, found 1",
		"--data-gpu " +
			"cpu --model-gpu 0",
	},
	{
		"auto of none", 0, Request{Data: "auto", Model: "auto"}, 0, 0, "", "two GPUs are requested, found 0",
		"--device cpu",
	},
	{"auto data", 4, Request{Data: "auto", Model: "0"}, 1, 0, "auto: of 4", "", ""},
	{"auto model", 4, Request{Data: "2", Model: "auto"}, 2, 0, "auto: of 4", "", ""},
	{
		"auto model, data on the CPU", 2, Request{Data: "cpu", Model: "auto"}, cpu, 0,
		"auto: GPU 0 is idle, 24576 MB, of 2 visible", "", "",
	},
	{
		"auto model of none", 0, Request{Data: "cpu", Model: "auto"}, 0, 0, "", "--model-gpu auto: no GPU found",
		"--device cpu",
	},
}

// withLimits are requests with limits of memory.
var withLimits = []placement{
	{
		"isolated", 2, Request{Data: "0", Model: "1", Isolate: true, DataLimit: limits, ModelLimit: 2 * limits}, 0, 1,
		"", "", "",
	},
	{"too much", 2, Request{Data: "0", Model: "1", Isolate: true, ModelLimit: 4 * limits}, 0, 0, "",
		"--model-gpu-memory 32768: GPU 1 (Fake GPU, GPU-b0000001-0000-0000-0000-000000000000) has 24576 MB",
		"--model-gpu-memory auto, which is 16465 MB there"},
	{
		"too much data", 2, Request{Data: "0", Model: "1", Isolate: true, DataLimit: 4 * limits}, 0, 0, "",
		"--data-gpu-memory 32768: GPU 0", "auto, which is 8110 MB",
	},
	{"too much, not applied", 2, Request{Data: "0", Model: "1", ModelLimit: 4 * limits}, 0, 1, "", "", ""},
	{
		"too much for both", 1,
		Request{Data: "0", Model: "0", Isolate: true, DataLimit: 2 * limits, ModelLimit: 2 * limits}, 0, 0, "",
		"--data-gpu-memory 16384 and --model-gpu-memory 16384: GPU 0", "auto for both",
	},
	{"both by auto", 1, Request{Data: "0", Model: "0", Isolate: true}, 0, 0, "", "", ""},
}

func TestPlaceByDevice(t *testing.T)   { checkPlacements(t, byDevice) }
func TestPlaceByFlags(t *testing.T)    { checkPlacements(t, byFlags) }
func TestPlaceByAuto(t *testing.T)     { checkPlacements(t, byAuto) }
func TestPlaceWithLimits(t *testing.T) { checkPlacements(t, withLimits) }

func checkPlacements(t *testing.T, placements []placement) {
	t.Helper()
	for _, tt := range placements {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Decide(tt.request, machine(t, tt.cards))
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) || !strings.Contains(hint.Of(err), tt.hint) {
					t.Errorf("%+v, error %v", p, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			index := func(s Role) int {
				if s.OnCPU() {
					return cpu
				}
				return s.GPU.Index
			}
			if index(p.Data) != tt.data || index(p.Model) != tt.model || !strings.HasPrefix(p.Reason, tt.reason) ||
				(p.Reason == "") != (tt.reason == "") {
				t.Errorf("data on %d, model on %d: %s", index(p.Data), index(p.Model), p.Reason)
			}
			r := tt.request
			if !r.Isolate && (p.Data.Limit != 0 || p.Model.Limit != 0) ||
				r.Isolate && (p.Data.Limit != p.Data.Plan || p.Model.Limit == 0) {
				t.Errorf("limits %+v", p)
			}
		})
	}
}

// TestPlans checks the limits that are shown, and applied under isolation.
func TestPlans(t *testing.T) {
	m := machine(t, 2)
	for _, tt := range []struct {
		request     Request
		data, model int64 // MB
	}{
		{Request{Data: "0", Model: "1"}, 8110, 16465},
		{Request{Data: "0", Model: "1", DataLimit: gpu.MB, ModelLimit: 2 * gpu.MB}, 1, 2},
		{Request{Data: "0", Model: "0"}, 8110, 16465},
		{Request{Data: "cpu", Model: "0", DataLimit: gpu.MB}, 0, 16465},
		{Request{}, 0, 16465},
		{Request{Device: CPU, DataLimit: gpu.MB, ModelLimit: gpu.MB}, 0, 0},
	} {
		p, err := Decide(tt.request, m)
		if err != nil || p.Data.Plan != tt.data*gpu.MB || p.Model.Plan != tt.model*gpu.MB {
			t.Errorf("%+v: %d and %d MB, %v", tt.request, p.Data.Plan/gpu.MB, p.Model.Plan/gpu.MB, err)
		}
	}
}

// TestChoose changes four equal cards and sees which two are taken.
func TestChoose(t *testing.T) {
	busy := func(index int) func(*gputest.Inventory) {
		return func(i *gputest.Inventory) {
			i.Update(index, func(c *gpu.Card) { c.Used, c.Free = 20000*gpu.MB, 4576*gpu.MB })
		}
	}
	joined := func(a, b int, l gpu.Link) func(*gputest.Inventory) {
		return func(i *gputest.Inventory) {
			if i.Links == nil {
				i.Links = map[[2]int]gpu.Link{}
			}
			i.Links[[2]int{a, b}] = l
		}
	}
	size := func(index int, mb int64) func(*gputest.Inventory) {
		return func(i *gputest.Inventory) {
			i.Update(index, func(c *gpu.Card) { c.Memory, c.Free, c.Total = mb*gpu.MB, mb*gpu.MB, mb*gpu.MB })
		}
	}
	type changes = []func(*gputest.Inventory)
	for _, tt := range []struct {
		name        string
		changes     changes
		data, model int
		reason      string
	}{
		{"NVLink", changes{
			joined(2, 3, gpu.Link{NVLinks: 4, Peer: true}), joined(0, 1, gpu.Link{Distance: gpu.OneSwitch, Peer: true}),
		}, 2, 3, "connected by 4 NVLinks, with peer access"},
		{
			"more NVLinks", changes{joined(0, 1, gpu.Link{NVLinks: 1}), joined(1, 3, gpu.Link{NVLinks: 2})}, 1, 3,
			"by 2 NVLinks",
		},
		{
			"peer access",
			changes{
				joined(1, 2, gpu.Link{Distance: gpu.HostBridge, Peer: true}),
				joined(0, 1, gpu.Link{Distance: gpu.OneSwitch}),
			},
			1, 2, "through the CPU's host bridge, with peer",
		},
		{
			"near",
			changes{joined(1, 3, gpu.Link{Distance: gpu.OneSwitch}), joined(0, 1, gpu.Link{Distance: gpu.SameNode})}, 1,
			3, "through one PCIe switch",
		},
		{"idle goes before near", changes{joined(0, 1, gpu.Link{NVLinks: 4}), busy(0)}, 1, 2, "1 (idle"},
		{"the largest trains", changes{size(1, 80000), joined(2, 3, gpu.Link{NVLinks: 4})}, 0, 1, "1 (idle, 80000 MB)"},
		{"about as large", changes{size(3, 24570), joined(2, 3, gpu.Link{NVLinks: 4})}, 2, 3, ""},
		{"all in use", changes{busy(0), busy(1), busy(2), busy(3)}, 0, 1, "0 (20000 of 24576 MB in use)"},
	} {
		p, err := Decide(Request{Data: Auto, Model: Auto}, machine(t, 4, tt.changes...))
		if err != nil || p.Data.GPU.Index != tt.data || p.Model.GPU.Index != tt.model ||
			!strings.Contains(p.Reason, tt.reason) {
			t.Errorf("%s: data on %d, model on %d: %s, %v", tt.name, p.Data.GPU.Index, p.Model.GPU.Index, p.Reason, err)
		}
	}
}

func TestNeeds(t *testing.T) {
	for _, tt := range []struct {
		request Request
		want    int
	}{
		{Request{}, 0}, {Request{Device: Auto}, 0}, {Request{Device: CPU}, 0},
		{Request{Device: config.CUDA}, 1}, {Request{Isolate: true}, 1}, {Request{Data: CPU, Model: "1"}, 1},
		{Request{Data: "1", Model: "1"}, 1}, {Request{Data: "0", Model: "1"}, 2}, {Request{Data: Auto, Model: Auto}, 2},
		{Request{Device: config.CUDA, Data: "0", Model: Auto}, 2},
	} {
		if got := tt.request.Needs(); got != tt.want {
			t.Errorf("%+v needs %d, want %d", tt.request, got, tt.want)
		}
	}
}
