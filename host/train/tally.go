package train

import (
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Tally is what each rank says with the gradients of a window, and what all of them get as its sum: so they agree on
// what a rank asks for, and know what all have done, without another exchange. Sums below 2^24 are exact.
type Tally struct {
	Stops           float32 // 1 to end the run after the window
	Samples, Frames float32 // that the window trained on
	LeftOut         float32 // rows of the window that cannot be used
}

// tallied is the number of its values: kernels read them 16 bytes at once.
const tallied = 4

// tallying is the tally of the last player's update.
type tallying struct {
	own   Tally     // of the windows that end from now on
	words *words    // nil alone, and for all players but the last
	sum   []float32 // in words
	part  Part

	staged [2][]byte // on a GPU, what is sent: in turn, because the result of the window before is not read yet
	turn   int
}

// bind allocates the sum.
func (t *tallying) bind(o *Optimizer) {
	if o.player != o.model.players[len(o.model.players)-1] {
		return
	}
	words := o.words(1) // a word has room for more
	first := newWord[float32](&o.memory, words, manifest.F32)
	if o.err != nil {
		return
	}
	t.words = words
	span := ortgraphs.Span{DType: manifest.F32, Offset: first.at, Elements: tallied}
	t.sum, t.part = ort.View[float32](words.host[span.Offset:][:span.Bytes()]), words.part(span)
	if !o.device.onGPU() {
		return
	}
	pinned, err := o.device.Context.AllocateHost(len(t.staged) * apart)
	if o.err = err; err != nil {
		return
	}
	o.add(pinned.Close)
	for i := range t.staged {
		t.staged[i] = pinned.Bytes()[i*apart:][:span.Bytes()]
	}
}

// parts lists the sum, if there is one.
func (t *tallying) parts() []Part {
	if t.words == nil {
		return nil
	}
	return []Part{t.part}
}

// send queues this rank's tally, before the sum over the ranks.
func (t *tallying) send(m *memory) error {
	if t.words == nil {
		return nil
	}
	own := []float32{t.own.Stops, t.own.Samples, t.own.Frames, t.own.LeftOut}
	if !m.device.onGPU() {
		copy(t.sum, own)
		return nil
	}
	staged := t.staged[t.turn]
	t.turn = 1 - t.turn
	copy(ort.View[float32](staged), own)
	return m.device.Compute.Upload(t.words.dev, 0, staged)
}

// receive queues the transfer of the sum.
func (t *tallying) receive(m *memory) error {
	if t.words == nil {
		return nil
	}
	return m.receive(t.words)
}

// SetTally sets what this process says from the next Step of the last player on.
func (all Optimizers) SetTally(t Tally) { all[len(all)-1].window.share.tally.own = t }

// TallySum returns the sum over the ranks of what each had set when the last window ended, when Outcome may be called.
// Alone it is what was set.
func (all Optimizers) TallySum() Tally {
	t := &all[len(all)-1].window.share.tally
	if t.words == nil {
		return t.own
	}
	return Tally{Stops: t.sum[0], Samples: t.sum[1], Frames: t.sum[2], LeftOut: t.sum[3]}
}
