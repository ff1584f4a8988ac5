package companding

import (
	"math"

	"github.com/zaf/g711"

	"github.com/xtts-host/xtts-host/shared/wav"
)

// table has what G.711 makes of each sample of 16 bits.
type table [1 << 16]float32

// newTable codes and decodes all samples by a law.
func newTable(law string) *table {
	t := new(table)
	for i := range t {
		sample := int16(i - 1<<15)
		var decoded int16
		if law == "mu" {
			decoded = g711.DecodeUlawFrame(g711.EncodeUlawFrame(sample))
		} else {
			decoded = g711.DecodeAlawFrame(g711.EncodeAlawFrame(sample))
		}
		t[i] = float32(decoded) / (1 << 15)
	}
	return t
}

func (t *table) apply(samples []float32) {
	for i, x := range samples {
		samples[i] = t[int(wav.Sample(x))+1<<15]
	}
}

const (
	mu = 255
	a  = 87.6
)

// expansions has the inverse of each law, for 0..1.
var expansions = map[string]func(float64) float64{
	"mu": func(y float64) float64 { return (math.Pow(1+mu, y) - 1) / mu },
	"a": func(y float64) float64 {
		if whole := 1 + math.Log(a); y*whole >= 1 {
			return math.Exp(y*whole-1) / a
		} else {
			return y * whole / a
		}
	},
}

// quantizer rounds magnitudes to the nearest level of a compressed scale. To find the level of a magnitude, it begins
// at the level that the upper half of the bits of the float can have at least, and compares with the bounds from there
// on.
type quantizer struct {
	levels []float32 // of level k, expanded
	bounds []float32 // the least magnitude of level k+1; the last is infinite
	first  [1 << 15]uint16
}

func newQuantizer(expand func(float64) float64, bits int) *quantizer {
	q := new(quantizer)
	steps := 1<<(bits-1) - 1
	for k := range steps + 1 {
		q.levels = append(q.levels, float32(expand(float64(k)/float64(steps))))
		bound := math.Inf(1)
		if k < steps {
			bound = expand((float64(k) + 0.5) / float64(steps))
		}
		q.bounds = append(q.bounds, float32(bound))
	}
	level := 0
	for i := range q.first {
		least := math.Float32frombits(uint32(i) << 16)
		for least >= q.bounds[level] && level < steps {
			level++
		}
		q.first[i] = uint16(level)
	}
	return q
}

func (q *quantizer) apply(samples []float32) {
	for i, x := range samples {
		bits := math.Float32bits(x)
		magnitude := math.Float32frombits(bits &^ (1 << 31))
		level := q.first[bits&^(1<<31)>>16]
		for magnitude >= q.bounds[level] {
			level++
		}
		samples[i] = math.Float32frombits(math.Float32bits(q.levels[level]) | bits&(1<<31))
	}
}
