// Package companding implements the stage "companding", which quantizes the rows as a codec of telephony does, by the
// mu-law or the A-law.
//
// With the coding g711, a sample is rounded to 16 bits and coded by ITU-T G.711, whose 8 bits are a sign, a segment and
// a step in the segment. With the coding continuous, the law itself compresses a sample to [-1,1], which is rounded to
// the nearest of 2^bits - 1 levels about 0, and expanded: mu is 255, A is 87.6. Samples beyond full scale are clipped,
// as by the codec.
package companding

import (
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	Laws    []string `json:"laws"`
	Coding  string   `json:"coding"`
	BitsMin int      `json:"bits_min"`
	BitsMax int      `json:"bits_max"`
}

func defaults() config {
	return config{Laws: []string{"mu", "a"}, Coding: "g711", BitsMin: 6, BitsMax: 8}
}

// New returns the stage.
func New() stage.Stage { return &waveform.Stage{Effect: &effect{config: defaults()}} }

type effect struct {
	config     config
	g711       map[string]*table
	continuous map[string][]*quantizer // by bits, from BitsMin on
}

// Configure makes the tables. It refuses a range in the wrong order.
func (e *effect) Configure(cfg *stage.Config) error {
	c := &e.config
	if err := cfg.Decode(c); err != nil {
		return err
	}
	if err := waveform.Names("laws", c.Laws); err != nil {
		return err
	}
	e.g711, e.continuous = map[string]*table{}, map[string][]*quantizer{}
	for _, law := range c.Laws {
		e.g711[law] = newTable(law)
		for bits := c.BitsMin; bits <= c.BitsMax; bits++ {
			e.continuous[law] = append(e.continuous[law], newQuantizer(expansions[law], bits))
		}
	}
	return waveform.Ordered(waveform.Range{Name: "bits", Low: float64(c.BitsMin), High: float64(c.BitsMax)})
}

// Apply draws the law and the number of bits.
func (e *effect) Apply(r *waveform.Row) error {
	law := &e.config.Laws[r.Below(len(e.config.Laws))]
	bits := r.Integer(e.config.BitsMin, e.config.BitsMax)
	r.ReportName("law", law)
	if e.config.Coding == "g711" {
		e.g711[*law].apply(r.Samples)
		return nil
	}
	r.Report("bits", float64(bits))
	e.continuous[*law][bits-e.config.BitsMin].apply(r.Samples)
	return nil
}
