package synthesize

import (
	"slices"

	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// decoding is the state of the model within a text.
type decoding struct {
	speaker *Speaker
	reads   []string             // the results that the host reads
	made    map[string][]float32 // by their names, of the last run
	cache   inference.Values     // by the inputs of the next run
}

func (s *Speaker) decoding(reads ...string) decoding {
	return decoding{speaker: s, reads: reads, cache: inference.Values{}}
}

// begin runs the text.
func (d *decoding) begin(voice *Voice, tokens []int32) error {
	text, err := inference.Integers(tokens, 1, len(tokens))
	if err != nil {
		return err
	}
	defer text.Close()
	length, err := inference.Integers([]int32{int32(len(tokens))}, 1)
	if err != nil {
		return err
	}
	defer length.Close()
	return d.run(d.speaker.prefill, inference.Values{
		manifest.TensorVoice: voice.voice, manifest.TensorText: text, manifest.TensorTextLengths: length,
	})
}

// next runs the model for a position, and for what was chosen there, if the host chooses.
func (d *decoding) next(position int, chosen map[string]int) error {
	given := map[string]int{manifest.TensorPosition: position}
	for name, x := range chosen {
		given[name] = x
	}
	for name, x := range given {
		v, err := inference.Integers([]int32{int32(x)}, 1)
		if err != nil {
			return err
		}
		defer v.Close()
		d.cache[name] = v
		defer delete(d.cache, name)
	}
	return d.run(d.speaker.step, d.cache)
}

// run runs a graph, and takes from its results what the next step needs.
func (d *decoding) run(g *inference.Graph, given inference.Values) error {
	results, err := g.Run(given, d.reads...)
	if err != nil {
		return err
	}
	defer results.Close()
	d.made = map[string][]float32{}
	for _, name := range d.reads {
		d.made[name] = slices.Clone(results[name].Floats())
	}
	step := &d.speaker.step.Spec
	for _, in := range step.Inputs {
		from := step.Source(in.Name)
		if made, ok := results[from]; ok {
			if before, ok := d.cache[in.Name]; ok {
				before.Close()
			}
			d.cache[in.Name] = made
			delete(results, from)
		}
	}
	return nil
}

func (d *decoding) close() { d.cache.Close() }
