package synthesize

import (
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The latents of the first part of a waveform, which decide about the time to the first sound, and of the parts after
// it, which become longer: each costs a run of the vocoder on everything since the beginning of its window.
const (
	firstPart   = 8
	longestPart = 128
)

// partial is the waveform of latents that come one by one. The vocoder runs on a window of them, and what depends on
// latents after or before it is left out. So the parts are those of the waveform of all latents.
type partial struct {
	vocoder *inference.Graph
	speaker *inference.Value
	windows manifest.Windows
	emit    func([]float32) error

	window  []float32 // latents
	width   int       // of a latent
	start   int       // latents before the window
	emitted int       // samples
	part    int       // latents of the next part
	waiting int       // latents since the last run
}

func newWaveform(s *Speaker, voice *Voice, emit func([]float32) error) *partial {
	return &partial{
		vocoder: s.vocoder, speaker: voice.speaker, windows: s.spec.Codes.Vocoder, emit: emit, part: firstPart,
		waiting: -s.spec.Codes.Vocoder.Context,
	}
}

// add takes the next latent.
func (p *partial) add(latent []float32) error {
	p.window, p.width = append(p.window, latent...), len(latent)
	if p.waiting++; p.waiting < p.part {
		return nil
	}
	p.waiting, p.part = 0, min(2*p.part, longestPart)
	return p.run(p.samples(p.start + p.count() - p.windows.Context))
}

// end emits what is left.
func (p *partial) end() error { return p.run(-1) }

// run emits the samples before end, or with -1 all.
func (p *partial) run(end int) error {
	latents, err := inference.Floats(p.window, 1, p.count(), p.width)
	if err != nil {
		return err
	}
	defer latents.Close()
	wave, _, err := one(p.vocoder, inference.Values{manifest.TensorLatents: latents, manifest.GraphSpeaker: p.speaker},
		manifest.TensorWaveform)
	if err != nil {
		return err
	}
	if want := p.samples(p.count()); len(wave) < want-p.samples(1)-1 || len(wave) > want+p.samples(1)+1 {
		return hint.Errorf("correct synthesis.vocoder of bundle.json (docs/speaking-graphs.md), or export the bundle "+
			"again",
			"the vocoder makes %d samples of %d latents, but synthesis.vocoder says %d", len(wave), p.count(), want)
	}
	before := p.samples(p.start)
	if end < 0 || end > before+len(wave) {
		end = before + len(wave)
	}
	if end <= p.emitted {
		return nil
	}
	part := wave[p.emitted-before : end-before]
	p.emitted = end
	p.move()
	return p.emit(part)
}

// move lets the window begin later, as far as the next sample allows.
func (p *partial) move() {
	at := p.emitted * p.windows.Latents / p.windows.Samples
	start := min(max(0, at-p.windows.Context), p.start+p.count()) / p.windows.Latents * p.windows.Latents
	if start > p.start {
		p.window = append([]float32(nil), p.window[(start-p.start)*p.width:]...)
		p.start = start
	}
}

// samples is where the waveform of a latent begins.
func (p *partial) samples(latents int) int { return latents * p.windows.Samples / p.windows.Latents }

// count is the number of latents in the window.
func (p *partial) count() int { return len(p.window) / p.width }
