// Package dropout implements the stage "dropout", which takes pieces out of the rows.
//
// In the mode pieces, a random number of pieces of random length and place become zeros. In the mode packets, a row is
// sent in packets of packet_ms, of which some are lost, as over a bad connection: after a packet that arrived the next
// is lost with the probability p, and after one that was lost with the probability q, so that losses come in bursts (E.
// N. Gilbert, "Capacity of a burst-noise channel", 1960). q is 1 - 1/burst for a mean length of burst packets, and p
// makes a share of the packets of the row, uniform in [loss_min, loss_max], be lost in the mean. The first packet is
// lost with the probability of that share, so short rows lose as much. A packet arrives between two bursts, so the
// share is at most burst/(burst+1): a larger loss_max is refused. What is lost becomes zeros or, with the concealment
// repeat, the last packet that arrived, at half the level for each packet in the burst.
package dropout

import (
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	Mode        string  `json:"mode"`
	PiecesMin   int     `json:"pieces_min"`
	PiecesMax   int     `json:"pieces_max"`
	PieceMSMin  float64 `json:"piece_ms_min"`
	PieceMSMax  float64 `json:"piece_ms_max"`
	PacketMS    float64 `json:"packet_ms"`
	LossMin     float64 `json:"loss_min"`
	LossMax     float64 `json:"loss_max"`
	Burst       float64 `json:"burst"`
	Concealment string  `json:"concealment"`
}

func defaults() config {
	return config{Mode: "pieces", PiecesMin: 1, PiecesMax: 3, PieceMSMin: 10, PieceMSMax: 80,
		PacketMS: 20, LossMin: 0.01, LossMax: 0.1, Burst: 2, Concealment: "zeros"}
}

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config config
	rate   int
}

// Configure refuses a range in the wrong order, and a share that losses in bursts of the given length cannot have.
func (e *effect) Configure(cfg *stage.Config) error {
	c := &e.config
	if err := cfg.Decode(c); err != nil {
		return err
	}
	e.rate = cfg.Features.SampleRate
	if most := c.Burst / (c.Burst + 1); c.LossMax > most {
		advice := fmt.Sprintf("set loss_max to %g or less, or burst to %g or more", math.Floor(1000*most)/1000,
			math.Ceil(100*c.LossMax/(1-c.LossMax))/100)
		return hint.Errorf(advice, "config: loss_max %g is above burst/(burst+1), which is %.4g", c.LossMax, most)
	}
	return waveform.Ordered(waveform.Range{Name: "pieces", Low: float64(c.PiecesMin), High: float64(c.PiecesMax)},
		waveform.Range{Name: "piece_ms", Low: c.PieceMSMin, High: c.PieceMSMax},
		waveform.Range{Name: "loss", Low: c.LossMin, High: c.LossMax})
}

// Apply takes out pieces or packets.
func (e *effect) Apply(r *waveform.Row) error {
	if e.config.Mode == "packets" {
		e.packets(r)
	} else {
		e.pieces(r)
	}
	return nil
}

// pieces draws their number, and the length and the place of each. A piece is at most half of the row.
func (e *effect) pieces(r *waveform.Row) {
	count := r.Integer(e.config.PiecesMin, e.config.PiecesMax)
	lost := 0
	for range count {
		length := waveform.Samples(r.Uniform(e.config.PieceMSMin, e.config.PieceMSMax), e.rate)
		length = min(length, len(r.Samples)/2)
		clear(r.Samples[r.Below(len(r.Samples)-length+1):][:length])
		lost += length
	}
	r.Report("pieces", float64(count))
	r.Report("piece_samples", float64(lost))
}

// packets draws the share of packets that are lost, and for each packet whether it is lost.
func (e *effect) packets(r *waveform.Row) {
	share := r.Uniform(e.config.LossMin, e.config.LossMax)
	again := 1 - 1/e.config.Burst
	begins := share * (1 - again) / (1 - share) // because the share is p / (p + 1 - q)
	size := max(1, waveform.Samples(e.config.PacketMS, e.rate))
	lost := 0
	p := share // of the first packet
	for from := 0; from < len(r.Samples); from += size {
		if !r.Chance(p) {
			p = begins
			continue
		}
		p = again
		lost++
		packet := r.Samples[from:min(from+size, len(r.Samples))]
		if e.config.Concealment == "repeat" && from >= size {
			copy(packet, r.Samples[from-size:from]) // which is at half the level itself from the second on
			waveform.Scale(packet, 0.5)
		} else {
			clear(packet)
		}
	}
	r.Report("loss", share)
	r.Report("lost_packets", float64(lost))
}
