package reduce

import (
	"errors"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/host/ranks/meet"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// pieceBytes is the size of the pieces that are sent and added. While rank 0 adds one, the others send the next.
const pieceBytes = 1 << 20

// TCP adds up memory of the host. Rank 0 receives from all, adds in the order of the ranks, and sends the result: all
// ranks have the same bits, and every run with the same ranks has them. A value of bf16 is added up in f32 and rounded
// once, to the nearest, ties to even.
//
// It is for training on CPUs and for tests: rank 0 receives and sends (ranks - 1) times the bytes of the gradients.
type TCP struct{ Group *meet.Group }

// errOnGPU is a fault of the caller.
var errOnGPU = errors.New("memory of a GPU cannot be added up over TCP")

// Sum implements train.Ranks.
func (r TCP) Sum(_ gpu.Stream, parts []train.Part) error { return r.reduce(parts, add) }

// Broadcast implements train.Ranks.
func (r TCP) Broadcast(parts []train.Part) error {
	return r.reduce(parts, func(manifest.DType, [][]byte) {}) // what rank 0 has stays
}

// piece is a piece of a part.
type piece struct {
	dtype manifest.DType
	data  []byte
}

func (r TCP) reduce(parts []train.Part, combine func(t manifest.DType, all [][]byte)) error {
	var all []piece
	for _, p := range parts {
		if p.Host == nil && p.Elements > 0 {
			return errOnGPU
		}
		for data := p.Host; len(data) > 0; {
			n := min(len(data), pieceBytes)
			all, data = append(all, piece{p.DType, data[:n]}), data[n:]
		}
	}
	return r.Group.Reduce(len(all), func(i int) []byte { return all[i].data },
		func(i int, ranks [][]byte) { combine(all[i].dtype, ranks) })
}

// add adds up the values of all ranks in the memory of rank 0.
func add(t manifest.DType, ranks [][]byte) {
	if t == manifest.BF16 {
		addBF16(ranks)
		return
	}
	sum := ort.View[float32](ranks[0])
	for _, other := range ranks[1:] {
		for i, v := range ort.View[float32](other) {
			sum[i] += v
		}
	}
}

func addBF16(ranks [][]byte) {
	var all [][]uint16
	for _, r := range ranks {
		all = append(all, ort.View[uint16](r))
	}
	for i, first := range all[0] {
		sum := kernels.F32(first)
		for _, other := range all[1:] {
			sum += kernels.F32(other[i])
		}
		all[0][i] = kernels.BF16(sum)
	}
}
