package train

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// others are the ranks of a world in which the others have these numbers.
type others struct{ numbers []float32 }

func (o others) Sum(on gpu.Stream, parts []Part) error {
	return on.(*gputest.Stream).Run(0, func() error {
		for _, n := range o.numbers {
			for i, more := range []float32{n, n * n, 1} {
				ort.View[float32](parts[i].Block.(*gputest.Memory).Bytes())[(parts[i].Address-
					uint64(parts[i].Block.Pointer()))/4] += more
			}
		}
		return nil
	})
}

func (others) Broadcast([]Part) error { return nil }

// TestAlike: ranks with the same number find that out, and others do as well, also where the mean is theirs.
func TestAlike(t *testing.T) {
	d, _ := fakeDevice(t)
	m := newMemory(d)
	defer m.Close()
	for _, c := range []struct {
		own    int
		others []float32
		want   bool
	}{
		{0, []float32{0}, true}, {25, []float32{25, 25}, true}, {1, []float32{0}, false}, {0, []float32{25}, false},
		{3, []float32{2, 4}, false}, {4095, []float32{4095, 4095, 4095}, true}, {1000, []float32{999, 1001}, false},
	} {
		got, err := alike(&m, others{c.others}, c.own)
		if err != nil || got != c.want {
			t.Errorf("%d and %v: %v, %v", c.own, c.others, got, err)
		}
	}
}
