package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestOrigins follows the clips through a pipeline.
func TestOrigins(t *testing.T) {
	made := []manifest.TensorSpec{tensorSpec("pitch", manifest.F32, 0, "B", "T_pitch")}
	for _, t := range dataset.Specs() {
		made = append(made, t)
	}
	instance := func(name, inputs, outputs string) catalog.Instance {
		in := catalog.Instance{Name: name, Inputs: map[string]string{}, Outputs: map[string]string{}}
		var a, b string
		fmt.Sscan(inputs, &a, &b)
		in.Inputs["x"], in.Inputs["y"], in.Outputs["z"] = a, b, outputs
		return in
	}
	got := origins([]catalog.Instance{
		instance("loud", "waveform waveform_lengths", "waveform"),
		instance("echo", "reference_waveform reference_lengths", "reference_waveform"),
		instance("target", "waveform waveform_lengths", "mel"),
		instance("reference", "reference_waveform reference_lengths", "reference_mel"),
		instance("codes", "reference_mel speaker_ids", "codes"),
		instance("of codes", "codes", "embedding"),
		instance("columns", "pitch text_lengths", "pitch"),
		instance("text", "text_sequences text_lengths", "phonemes"),
		instance("of text", "phonemes language_ids", "phonemes"),
		instance("both", "mel embedding", "both"),
		instance("of both", "both", "both"),
		instance("pitch and reference", "pitch reference_mel", "other"),
		instance("anew", "waveform", "other"), // another stage has written it before
		instance("of anew", "other", "other"),
	}, made)
	want := map[string]origin{
		"loud": fromTarget, "echo": fromReference, "target": fromTarget, "reference": fromReference,
		"codes": fromReference, "of codes": fromReference, "columns": fromTarget, "text": fromTarget,
		"of text": fromTarget, "both": fromTarget | fromReference, "of both": fromTarget | fromReference,
		"pitch and reference": fromTarget | fromReference, "anew": fromTarget, "of anew": fromTarget,
	}
	if !maps.Equal(got, want) {
		t.Errorf("origins %v\nwant    %v", got, want)
	}
}

// sourcePool notes the sources of a call.
type sourcePool struct {
	fakePool
	got string
}

func (p *sourcePool) Call(_ context.Context, req supervise.Request) (supervise.Result, error) {
	p.got = ""
	for _, s := range req.Sources {
		p.got += fmt.Sprintf("%s %d-%d;", s.Clip, s.Start, s.End)
	}
	return supervise.Result{}, nil
}

// TestDrawsOfRows: what a stage says of an empty row is left out, and nothing is left of an earlier call.
func TestDrawsOfRows(t *testing.T) {
	r := fakeCommon(t, 1)
	r.data.Train.Index.Rows = []dataset.Row{{ID: "a"}}
	answer := supervise.Result{Draws: []json.RawMessage{json.RawMessage("{}"), json.RawMessage("{}"), nil}}
	pool := &fakePool{call: func(int) (supervise.Result, error) { return answer, nil }}
	s := newStageRunner(r, pool, "mix-plugin", catalog.Instance{Name: "mix"}, nil, 3, slog.New(slog.DiscardHandler))
	for _, want := range []string{"[{}  ]", "[]"} {
		b := &pipeline.Batch{Rows: []int32{0, -1, -1}}
		r.guards.begin(b)
		if _, _, err := s.Process(t.Context(), b); err != nil || fmt.Sprintf("%s", s.attempts[0].draws) != want {
			t.Errorf("draws %s, want %s (%v)", s.attempts[0].draws, want, err)
		}
		answer.Draws = nil
	}
}

func TestSourcesOfRows(t *testing.T) {
	for of, want := range map[origin][2]string{
		fromTarget:                 {"a 0-100;b 0-200; 0-0;", "b 0-200; 0-0; 0-0;"},
		fromReference:              {"c 5-15;b 0-20; 0-0;", "a 0-100; 0-0; 0-0;"},
		fromTarget | fromReference: {},
		0:                          {}, // a trial that does not know the clips
	} {
		r := fakeCommon(t, 2)
		r.origins = map[string]origin{"mix": of}
		r.data.Train.Index.Rows = []dataset.Row{
			{ID: "a", Samples: 100}, {ID: "b", Samples: 200}, {ID: "c", Samples: 300},
		}
		r.crops = [][]dataset.Crop{
			{{Row: 2, Offset: 5, Length: 10}, {Row: 1, Length: 20}, {Row: -1}},
			{{Row: 0, Length: 100}, {Row: -1}, {Row: -1}},
		}
		pool := new(sourcePool)
		s := newStageRunner(r, pool, "mix-plugin", catalog.Instance{Name: "mix"}, nil, 3, slog.New(slog.DiscardHandler))
		for slot, rows := range [][]int32{{0, 1, -1}, {1, -1, -1}} {
			b := &pipeline.Batch{Slot: slot, Rows: rows}
			r.guards.begin(b)
			if _, _, err := s.Process(t.Context(), b); err != nil || pool.got != want[slot] {
				t.Errorf("%d, slot %d: %q, want %q (%v)", of, slot, pool.got, want[slot], err)
			}
		}
	}
}
