package together

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/host/train"
)

// Leads implements train.Coordinator.
func (r *Ranks) Leads() bool { return r == nil || r.World().Leads() }

// Coordinator returns the ranks for the training loop.
func (r *Ranks) Coordinator() train.Coordinator {
	if r == nil {
		return nil
	}
	return r
}

// Total implements train.Coordinator: it adds up in the order of the ranks.
func (r *Ranks) Total(values []float64) error {
	all, err := r.All(encode(values))
	if err != nil {
		return err
	}
	clear(values)
	own := make([]float64, len(values))
	for _, data := range all {
		if err := decode(data, own); err != nil {
			return err
		}
		for i, v := range own {
			values[i] += v
		}
	}
	return nil
}

// Decide implements train.Coordinator.
func (r *Ranks) Decide(values []float64) error {
	data, err := r.Share(encode(values))
	if err != nil {
		return err
	}
	return decode(data, values)
}

func encode(values []float64) (data []byte) {
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	return data
}

func decode(data []byte, values []float64) error {
	if len(data) != 8*len(values) {
		return fmt.Errorf("another rank has sent %d bytes for %d values", len(data), len(values))
	}
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return nil
}
