package validate

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/command/doctor"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/settings/world"
)

// examined is the doctor's report of a machine with cards of 24 GB, on which everything else is found.
func examined(cards int, change ...func(*doctor.Report)) *doctor.Report {
	r := &doctor.Report{Driver: gpu.Driver{Version: "580.1", CUDA: "13.0"}, Sections: []doctor.Section{
		{Title: "program", Findings: []doctor.Finding{{State: doctor.OK, Text: "xtts-host v1"}}},
		{Title: "driver", Findings: []doctor.Finding{{State: doctor.OK, Text: "NVIDIA driver 580.1"}}},
		{Title: "libraries", Findings: []doctor.Finding{
			{State: doctor.OK, Text: "ONNX Runtime 1.29.0: ort.so"}, {State: doctor.OK, Text: "libcudart.so.13"},
		}},
		{Title: "machine", Findings: []doctor.Finding{{State: doctor.OK, Text: "2 CPU cores"}}},
	}}
	if cards == 0 {
		r.Driver = gpu.Driver{Absent: "no driver"}
		r.Sections[1].Findings[0] = doctor.Finding{State: doctor.Note, Text: "no driver"}
	}
	for _, c := range gputest.Cards(cards, 24576*gpu.MB) {
		r.GPUs = append(r.GPUs, doctor.GPU{Card: c})
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// bad puts a cross into a section.
func bad(section int, text, hint string) func(*doctor.Report) {
	return func(r *doctor.Report) {
		r.Sections[section].Findings = append(r.Sections[section].Findings,
			doctor.Finding{State: doctor.Bad, Text: text, Hint: hint})
	}
}

// TestMachine: each fault is one cross with its remedy, and what depends on it is not tried.
func TestMachine(t *testing.T) {
	one, none := "0", "GPU-ff"
	two := place.Request{Data: "0", Model: "1"}
	list := place.Request{Model: "1,0", Ranks: world.World{Size: 2, LocalSize: 2}}
	for _, tt := range []struct {
		name    string
		report  *doctor.Report
		request place.Request
		want    []string // lines, without spaces in a row; all others are ticks
		untried int
	}{
		{"CPU", examined(0), place.Request{}, []string{
			"✓ driver none needed on the CPU: no driver", "✓ runtime ONNX Runtime 1.29.0: ort.so\n",
			"✓ number of GPUs 0 found, 0 needed", "✓ placement plugins on the CPU, the model on the CPU: ",
			"✓ memory limits none: no GPU is used"}, 0},
		{"CPU asked for", examined(2), place.Request{Device: place.CPU}, []string{
			"✓ driver none needed on the CPU: NVIDIA driver 580.1",
			"✓ placement plugins on the CPU, the model on the CPU",
		}, 0},
		{"one GPU", examined(1), place.Request{}, []string{
			"✓ runtime ONNX Runtime 1.29.0: ort.so, and for CUDA 1 more",
			"✓ number of GPUs 1 found, 0 needed: Fake GPU with 24576 MB",
			"✓ placement plugins on the CPU, the model on GPU 0: the first GPU",
			"✓ memory limits none; --enable-memory-isolation would give 16465 MB for training"}, 0},
		{"two GPUs", examined(2), place.Request{Data: "0", Model: "1", Isolate: true, Visible: new("0,1")}, []string{
			"✓ visible GPUs GPU 0, GPU 1: CUDA_VISIBLE_DEVICES=0,1",
			"✓ placement plugins on GPU 0, the model on GPU 1\n",
			"✓ memory limits at most 8110 of 24576 MB for the plugins, 16465 of 24576 MB for training"}, 0},
		{"driver crashed", examined(2, bad(1, "the probe process crashed", "see dmesg")), two, []string{
			"✗ driver the probe process crashed hint: see dmesg", `- number of GPUs not tried: "driver" failed`,
			`- memory limits not tried: "driver" failed`}, 4},
		{"no driver", examined(0), two, []string{
			"✗ driver two GPUs are requested, found 0: no driver hint: ", `- placement not tried: "driver" failed`,
		}, 4},
		{
			"no driver for a card",
			examined(0, func(r *doctor.Report) { r.Sections[1].Findings[0].Hint = "install a driver" }), two,
			[]string{"✗ driver no driver hint: install a driver\n"}, 4,
		},
		{
			"no driver, one flag alone", examined(0), place.Request{Data: "0"},
			[]string{"✗ driver --data-gpu 0: --model-gpu is missing hint: "}, 4,
		},
		{
			"limited address space", examined(0, bad(3, "the address space is limited", "ulimit -v unlimited")),
			place.Request{}, []string{"✗ machine the address space is limited hint: ulimit -v unlimited"}, 0,
		},
		{"libraries missing", examined(1, bad(2, "libcudnn.so.9: cannot open", "install CUDA 13"), bad(
			2, "libcublas.so.13: cannot open", "install CUDA 13",
		)), place.Request{}, []string{
			"✗ runtime libcudnn.so.9: cannot open libcublas.so.13: cannot open hint: install CUDA 13\n",
		}, 0},
		{"two asked for, one there", examined(1), two, []string{
			"✗ number of GPUs two GPUs are requested, found 1 hint: xtts-host --data-gpu cpu --model-gpu 0 trains on " +
				"that GPU",
			`- placement not tried: "number of GPUs" failed`}, 3},
		{"one is hidden", examined(2), place.Request{Data: "0", Model: "1", Visible: &one}, []string{
			"✓ number of GPUs 2 found, 2 needed",
			"✗ placement two GPUs are requested, found 1 (CUDA_VISIBLE_DEVICES=0) hint: "}, 1},
		{
			"a list", examined(2, func(r *doctor.Report) {
				r.Sections[2].Findings = append(r.Sections[2].Findings,
					doctor.Finding{State: doctor.OK, Text: "NCCL 2.28.9: nccl.so"})
			}), list, []string{
				"✓ number of GPUs 2 found, 2 needed", "✓ NCCL NCCL 2.28.9: nccl.so\n",
				"✓ placement plugins on the CPU, the model on GPU 1; that of rank 1 on GPU 0\n",
			}, 0,
		},
		{
			"a list without NCCL", examined(2, func(r *doctor.Report) {
				r.Sections[2].Findings = append(r.Sections[2].Findings,
					doctor.Finding{State: doctor.Note, Text: "no NCCL, which is needed: gone", Hint: "fetch it"})
			}), list, []string{"✗ NCCL no NCCL, which is needed: gone hint: fetch it\n"}, 0,
		},
		{
			"a list of more than there are", examined(1), list,
			[]string{"✗ number of GPUs --model-gpu 1: ", `- NCCL not tried: "number of GPUs" failed`}, 4,
		},
		{
			"hidden by what is not there", examined(2), place.Request{Visible: &none},
			[]string{"✗ visible GPUs ", "hint: correct the variable, or unset it"}, 2,
		},
		{
			"no such index", examined(2), place.Request{Data: "0", Model: "7"},
			[]string{"✗ placement --model-gpu 7: ", "hint: xtts-host doctor shows every GPU"}, 1,
		},
		{
			"one flag alone", examined(2), place.Request{Data: "0"},
			[]string{"✗ placement --data-gpu 0: --model-gpu is missing hint: "}, 1,
		},
		{
			"limit beyond the card", examined(2),
			place.Request{Data: "0", Model: "1", Isolate: true, ModelLimit: 1 << 40}, []string{
				"✓ placement plugins on GPU 0, the model on GPU 1\n",
				"✗ memory limits --model-gpu-memory 1048576: GPU 1", "hint: give less, or --model-gpu-memory auto"}, 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			placed := false
			m := &Machine{Report: tt.report, Request: tt.request, Place: place.Decide, Placed: func(place.Placement) {
				placed = true
			}}
			var out bytes.Buffer
			r, err := Try(t.Context(), []Section{{"prerequisites", m.Prerequisites()}, {"placement", m.Placement()}},
				&out)
			if err != nil {
				t.Fatal(err)
			}
			text := squeeze(out.String())
			crosses := 0
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
				if strings.HasPrefix(want, "✗") {
					crosses++
				}
			}
			passed, failed, untried := r.Count()
			all := 8
			if !tt.request.Ranks.Alone() {
				all++
			}
			apart := []string{"libraries missing", "limited address space", "a list without NCCL"}
			if failed != crosses || untried != tt.untried || passed+failed+untried != all ||
				placed != (crosses == 0 || slices.Contains(apart, tt.name)) {
				t.Errorf("%d crosses, %d not tried, placed %v:\n%s", failed, untried, placed, out.String())
			}
		})
	}
}

// squeeze makes one space of several, and of a line's end that is followed by one.
func squeeze(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		words := strings.Join(strings.Fields(line), " ")
		if i > 0 && strings.HasPrefix(line, "     ") {
			words = " " + words
		} else {
			words = "\n" + words
		}
		lines[i] = words
	}
	return strings.Join(lines, "")
}
