// Package room implements the stage "room", which places the rows in random rooms: it convolves each row with the
// impulse response of a rectangular room, which the image-source method computes (J. B. Allen and D. A. Berkley, "Image
// method for efficiently simulating small-room acoustics", 1979).
//
// A room has a random length, width, height and reverberation time, and random places of the speaker and the
// microphone, at least 0.5 m from each wall, or a quarter of the way across a small room. All walls reflect the share
// of the amplitude that gives the reverberation time by Eyring's formula. Each image of the speaker arrives at its
// time, as a sinc of 32 samples in a Hann window, with an error of at most 0.00002 of its peak. The response has all
// images up to the reverberation time, or in a small room with a long one the two million that are nearest. As in the
// paper, a high pass takes away what adds up at the lowest frequencies: here a Butterworth filter of second order at 50
// Hz.
//
// The direct sound is not delayed. The row keeps its length, so the end of the reverberation is cut, and its power.
package room

import (
	"github.com/xtts-host/xtts-host/plugins/augment/internal/biquad"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/convolve"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	LengthMin float64 `json:"length_m_min"`
	LengthMax float64 `json:"length_m_max"`
	WidthMin  float64 `json:"width_m_min"`
	WidthMax  float64 `json:"width_m_max"`
	HeightMin float64 `json:"height_m_min"`
	HeightMax float64 `json:"height_m_max"`
	RT60Min   float64 `json:"rt60_s_min"`
	RT60Max   float64 `json:"rt60_s_max"`
}

func defaults() config {
	return config{LengthMin: 3, LengthMax: 8, WidthMin: 2.5, WidthMax: 6, HeightMin: 2.4, HeightMax: 3.5,
		RT60Min: 0.15, RT60Max: 0.6}
}

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config   config
	rate     int
	highpass biquad.Filter
}

// Configure refuses ranges in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	c := &e.config
	if err := cfg.Decode(c); err != nil {
		return err
	}
	e.rate = cfg.Features.SampleRate
	e.highpass = biquad.Highpass(e.rate, 50, 0.7071067811865476)
	return waveform.Ordered(waveform.Range{Name: "length_m", Low: c.LengthMin, High: c.LengthMax},
		waveform.Range{Name: "width_m", Low: c.WidthMin, High: c.WidthMax},
		waveform.Range{Name: "height_m", Low: c.HeightMin, High: c.HeightMax},
		waveform.Range{Name: "rt60_s", Low: c.RT60Min, High: c.RT60Max})
}

// nearest is how near a place may be to a wall, in meters.
const nearest = 0.5

// Apply draws the size of the room, the reverberation time, and the two places.
func (e *effect) Apply(r *waveform.Row) error {
	c := &e.config
	b := box{size: [3]float64{r.Uniform(c.LengthMin, c.LengthMax), r.Uniform(c.WidthMin, c.WidthMax),
		r.Uniform(c.HeightMin, c.HeightMax)}}
	rt60 := r.Uniform(c.RT60Min, c.RT60Max)
	for i, size := range b.size {
		wall := min(nearest, size/4)
		b.speaker[i], b.microphone[i] = r.Uniform(wall, size-wall), r.Uniform(wall, size-wall)
	}
	b.reflection = b.eyring(rt60)
	r.Report("length_m", b.size[0])
	r.Report("width_m", b.size[1])
	r.Report("height_m", b.size[2])
	r.Report("rt60_s", rt60)
	r.Report("distance_m", b.distance())

	response := r.Float32(0, b.samples(rt60, e.rate))
	b.respond(response, r.Float32(1, sumsOf(len(response))), e.rate)
	h := r.Float64(0, len(response))
	for i, x := range response {
		h[i] = float64(x)
	}
	biquad.Cascade([]biquad.Filter{e.highpass}, h)
	convolve.Keep(r, h, half)
	return nil
}
