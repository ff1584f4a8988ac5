package synthesize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Voice is what the model knows of a speaker. A part that its graphs do not take is nil.
type Voice struct {
	voice, speaker *inference.Value
}

// Close releases the voice.
func (v *Voice) Close() {
	for _, part := range []*inference.Value{v.voice, v.speaker} {
		if part != nil {
			part.Close()
		}
	}
}

// Listen makes a voice of reference clips. A model without voices takes none. An error of a clip is a refusal that
// begins with its path.
func (s *Speaker) Listen(ctx context.Context, clips []string) (*Voice, error) {
	rows := make([]*dataset.Row, len(clips))
	for i, path := range clips {
		clip, err := dataset.OpenClip(path, s.voiceRate())
		if err != nil {
			return nil, exit.Refused(fmt.Errorf("%s: %w", path, unreadable(err)))
		}
		rows[i] = clip
	}
	return s.ListenTo(ctx, rows...)
}

// ListenTo is Listen for clips whose headers have been read. The speaker is the mean over the clips; the voice is that
// over chunks of all of them together.
func (s *Speaker) ListenTo(ctx context.Context, clips ...*dataset.Row) (*Voice, error) {
	var speakers, voices mean
	var all []float32
	r := s.spec.Reference
	rate := s.voiceRate()
	for _, clip := range clips {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		ofSpeaker, ofVoice, err := s.read(clip)
		if err != nil {
			return nil, exit.Refused(fmt.Errorf("%s: %w", clip.Path, err))
		}
		if s.speaker != nil {
			if err := s.hear(ofSpeaker, &speakers); err != nil {
				return nil, fmt.Errorf("%s: %w", clip.Path, err)
			}
		}
		all = append(all, ofVoice...)
	}
	all = all[:min(len(all), seconds(r.Voice, rate))]
	for size := seconds(r.Chunk, rate); len(all) > 0 &&
		len(all) >= seconds(r.Least, rate); all = all[min(size, len(all)):] {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := s.imitate(all[:min(size, len(all))], &voices); err != nil {
			return nil, err
		}
	}
	v := new(Voice)
	for part, m := range map[**inference.Value]*mean{&v.voice: &voices, &v.speaker: &speakers} {
		if m.count == 0 {
			continue
		}
		var err error
		if *part, err = m.value(); err != nil {
			v.Close()
			return nil, err
		}
	}
	return v, nil
}

// Embedding returns what the graph speaker makes of the beginning of a clip. It is nil for a model without that graph.
func (s *Speaker) Embedding(clip *dataset.Row) ([]float32, error) {
	if s.speaker == nil {
		return nil, nil
	}
	wave, err := s.beginning(clip, s.speaker.Spec.SampleRate)
	if err != nil {
		return nil, err
	}
	given, err := waveform(wave)
	if err != nil {
		return nil, err
	}
	defer given.Close()
	x, _, err := one(s.speaker, given, manifest.GraphSpeaker)
	return x, err
}

// voiceRate is the sample rate of what the voice is made of.
func (s *Speaker) voiceRate() int {
	if s.conditioningMel == nil {
		return s.mel.Features().SampleRate
	}
	return s.conditioningMel.Spec.SampleRate
}

// read returns the beginning of a clip at the sample rates of the speaker and of the voice.
func (s *Speaker) read(clip *dataset.Row) (ofSpeaker, ofVoice []float32, err error) {
	if s.speaker != nil {
		if ofSpeaker, err = s.beginning(clip, s.speaker.Spec.SampleRate); err != nil {
			return nil, nil, err
		}
	}
	ofVoice, err = s.beginning(clip, s.voiceRate())
	return ofSpeaker, ofVoice, err
}

// beginning returns what is heard of a clip.
func (s *Speaker) beginning(clip *dataset.Row, rate int) ([]float32, error) {
	r := s.spec.Reference
	at, err := clip.At(rate)
	if err != nil {
		return nil, unreadable(err)
	}
	wave := make([]float32, min(at.Samples, seconds(r.Speaker, rate)))
	if len(wave) < seconds(r.Least, rate) {
		return nil, hint.Errorf("give a clip of some seconds", "the clip has %.2g s, and a voice needs at least %g s",
			float64(len(wave))/float64(rate), r.Least)
	}
	if err := dataset.NewDecoder(rate).Decode(wave, at, 0); err != nil {
		return nil, unreadable(err)
	}
	if dataset.Silent(wave) {
		return nil, hint.Errorf("give a clip that begins with the voice", "the first %.2g s are silent: %s",
			float64(len(wave))/float64(rate), dataset.NoSound)
	}
	return wave, nil
}

// unreadable is the error of a clip whose path is in the message already.
func unreadable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return hint.Errorf("check the path", "%w", reason(err))
	}
	return hint.Errorf("name a sound file: WAV, FLAC, Ogg or MP3", "%w", reason(err))
}

// hear adds the speaker of a clip.
func (s *Speaker) hear(wave []float32, to *mean) error {
	given, err := waveform(wave)
	if err != nil {
		return err
	}
	defer given.Close()
	x, shape, err := one(s.speaker, given, manifest.GraphSpeaker)
	if err != nil {
		return err
	}
	return to.add(x, shape)
}

// imitate adds the voice of a chunk.
func (s *Speaker) imitate(wave []float32, to *mean) error {
	spectrogram, err := s.spectrogram(wave)
	if err != nil {
		return err
	}
	defer spectrogram.Close()
	x, shape, err := one(s.conditioning, spectrogram, manifest.TensorVoice)
	if err != nil {
		return err
	}
	return to.add(x, shape)
}

// spectrogram returns what conditioning takes of a chunk: what conditioning_mel makes, or that of the feature contract.
func (s *Speaker) spectrogram(wave []float32) (inference.Values, error) {
	if s.conditioningMel != nil {
		given, err := waveform(wave)
		if err != nil {
			return nil, err
		}
		defer given.Close()
		return s.conditioningMel.Run(given)
	}
	f := s.mel.Features()
	count := f.Frames(len(wave))
	x := make([]float32, count*f.NMels)
	if err := s.mel.Compute(x, wave); err != nil {
		return nil, err
	}
	return sequence(manifest.TensorConditioningMel, manifest.TensorConditioningLengths, x, count, f.NMels)
}

// waveform returns the inputs of graphs that take one clip.
func waveform(wave []float32) (inference.Values, error) {
	return sequence(manifest.TensorWaveform, manifest.TensorWaveformLengths, wave, len(wave))
}

// sequence returns a row of these dimensions, the first of which is its length.
func sequence(name, lengths string, x []float32, dims ...int) (inference.Values, error) {
	row, err := inference.Floats(x, append([]int{1}, dims...)...)
	if err != nil {
		return nil, err
	}
	n, err := inference.Integers([]int32{int32(dims[0])}, 1)
	if err != nil {
		return nil, errors.Join(err, row.Close())
	}
	return inference.Values{name: row, lengths: n}, nil
}

// mean is the mean of tensors of one shape.
type mean struct {
	sum   []float32
	shape []int
	count int
}

func (m *mean) add(x []float32, shape []int) error {
	if m.count == 0 {
		m.sum, m.shape = make([]float32, len(x)), shape
	}
	if len(x) != len(m.sum) {
		return fmt.Errorf("a result has the shape %v, and the one before %v", shape, m.shape)
	}
	for i, v := range x {
		m.sum[i] += v
	}
	m.count++
	return nil
}

func (m *mean) value() (*inference.Value, error) {
	for i := range m.sum {
		m.sum[i] /= float32(m.count)
	}
	return inference.Floats(m.sum, m.shape...)
}

func seconds(n float64, rate int) int { return int(n * float64(rate)) }
