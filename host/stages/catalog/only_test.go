package catalog

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestOnly: of a pipeline remain the named instances, what makes their inputs and the lengths that they must agree
// with, and the tensors of these.
func TestOnly(t *testing.T) {
	mask := inst("mask", "mask", m("mel", "mel_spectrograms", "lengths", "mel_lengths"), m("mel", "mel_spectrograms"))
	entries := append(prosodyEntries(t), testEntries()[0])
	pipeline := []manifest.StageInstance{reference, target, prosody, mask}
	all, err := Resolve(pipeline, entries, prosodyTypes("mel_lengths"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ asked, instances, plugins, inputs, data, between string }{
		{
			"target", "target", "features", "mel_spectrograms mel_lengths", "waveform waveform_lengths",
			"waveform waveform_lengths",
		},
		{
			"prosody", "target prosody", "features", "mel_spectrograms mel_lengths pitch energy",
			"waveform waveform_lengths", "waveform waveform_lengths prosody_lengths",
		},
		{
			"mask", "target mask", "features augment", "mel_spectrograms mel_lengths", "waveform waveform_lengths",
			"waveform waveform_lengths",
		},
		{
			"reference target", "reference target", "features",
			"mel_spectrograms mel_lengths reference_mel reference_mel_lengths",
			"reference_lengths reference_waveform waveform waveform_lengths",
			"reference_lengths reference_waveform waveform waveform_lengths",
		},
	} {
		r := all.Only(strings.Fields(c.asked))
		var plugins []string
		for _, p := range r.Plugins {
			plugins = append(plugins, p.Name())
		}
		for what, got := range map[string][2]string{
			"instances": {strings.Join(r.Names(), " "), c.instances},
			"plugins":   {strings.Join(plugins, " "), c.plugins},
			"inputs":    {tensors(r.Inputs), c.inputs},
			"data":      {tensors(r.Dataset), c.data},
			"between":   {tensors(r.Intermediates), c.between},
		} {
			if got[0] != got[1] {
				t.Errorf("only %s: %s %s, want %s", c.asked, what, got[0], got[1])
			}
		}
		calls := map[int]int{}
		for _, in := range r.Instances {
			if in.Index != calls[in.Plugin] {
				t.Errorf("only %s: %s has the number %d of its plugin, want %d", c.asked, in.Name, in.Index,
					calls[in.Plugin])
			}
			calls[in.Plugin]++
		}
	}
	if len(all.Instances) != 4 || all.Instances[1].Index != 1 {
		t.Error("the pipeline itself was changed")
	}
}

func tensors(specs []manifest.TensorSpec) string {
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}
