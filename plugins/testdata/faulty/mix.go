package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// mix is the stage.
type mix struct {
	amount float64
	calls  atomic.Int64
}

// A fault may occur at every second batch of a process, while others are in flight. failingStep is the step of the
// batch that fails in every process.
const (
	every       = 2
	failingStep = 5
)

// Configure implements stage.Stage.
func (m *mix) Configure(_ context.Context, cfg *stage.Config) error {
	c := struct{ Amount float64 }{0.5}
	if err := cfg.Decode(&c); err != nil {
		return err
	}
	if c.Amount > 1 {
		return hint.Errorf("take an amount from 0 to 1", "amount is %g", c.Amount)
	}
	if inject("ignores its configuration") {
		c.Amount = 0.5
	}
	m.amount = c.Amount
	return nil
}

// Process implements stage.Stage.
func (m *mix) Process(_ context.Context, b *stage.Batch) error {
	wave, lengths, width := b.Float32("waveform"), b.Int32("waveform_lengths"), b.Shape("waveform")[1]
	for row, n := range lengths {
		gain := float32(1 - m.amount*b.Rand(row).Float64())
		if err := checkSource(b, row, int64(n)); err != nil {
			return err
		}
		switch {
		case inject("draws from the clock"):
			gain = float32(1000+time.Now().Nanosecond()%1000) / 2000
		case inject("depends on the place") && row > 0:
			gain /= 2
		case inject("depends on the process"):
			gain = float32(1000+os.Getpid()%1000) / 2000
		case inject("depends on the restart"):
			gain /= float32(lives())
		case inject("depends on earlier calls"):
			gain /= float32(2 + m.calls.Load())
		case inject("scales as int16"):
			gain *= 32768
		case inject("declares its source cacheable"):
			from, _ := b.Source(row)
			gain = 1 / float32(1+from.End%9)
		case inject("mutes all"):
			gain = 0
		case inject("spoils one clip") && b.Clip(row) == "A/0001":
			gain = 1e6
		case inject("changes empty rows") && n == 0:
			clear(wave[row*width:][:width])
		}
		for i := range wave[row*width:][:n] {
			wave[row*width+i] *= gain
		}
	}
	if b.Step() == failingStep {
		m.alwaysFail(b, wave, lengths)
	}
	if m.calls.Add(1)%every == 0 {
		m.failOnce(b, wave, lengths)
	}
	return nil
}

// lives counts the processes that have asked, in a file that outlives them.
var lives = sync.OnceValue(func() int {
	file := filepath.Join(os.Getenv("XTTS_PLUGIN_FAULT_LIVES"), "lives")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	f.WriteString(".")
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	return int(info.Size())
})

// checkSource fails if a row does not have the source that it should have, if it has been told to.
func checkSource(b *stage.Batch, row int, samples int64) error {
	from, ok := b.Source(row)
	switch {
	case ok && inject("has protocol 1 only"):
		return fmt.Errorf("row %d has a source with protocol 1: %v", row, from)
	case !inject("knows its sources"):
	case ok != (samples > 0) || from.End-from.Start != samples || ok && samples > 0 && from.Clip == "":
		return fmt.Errorf("row %d of %d samples has the source %v, %v", row, samples, from, ok)
	}
	return nil
}

// alwaysFail applies the faults of the batch that fails in every process.
func (m *mix) alwaysFail(b *stage.Batch, wave []float32, lengths []int32) {
	switch {
	case inject("crashes at one batch"):
		crash()
	case inject("takes another dtype"):
		b.Int32("waveform")
	case lengths[0] > 0 && inject("gives NaN for one row"):
		wave[0] = float32(math.NaN())
	}
}

// kept is what is never freed.
var kept = make(chan []byte, 1<<20)

// failOnce applies the faults of any other batch.
func (m *mix) failOnce(b *stage.Batch, wave []float32, lengths []int32) {
	first := 0 // a row that is not empty
	for first < len(lengths) && lengths[first] == 0 {
		first++
	}
	if first == len(lengths) {
		return
	}
	switch {
	case inject("crashes"):
		crash()
	case inject("hangs"):
		hang()
	case inject("keeps memory"):
		kept <- bytes.Repeat([]byte{1}, 256<<10)
	case inject("fails"):
		panic("index out of range [7] with length 7")
	case inject("gives NaN"):
		wave[first*b.Shape("waveform")[1]] = float32(math.NaN())
	case inject("gives a length beyond the tensor"):
		lengths[first] = int32(b.Shape("waveform")[1]) + 1
	case inject("gives a negative length"):
		lengths[first] = -1
	case inject("writes to the padding"):
		for row, n := range lengths {
			clear(wave[row*b.Shape("waveform")[1]:][n:b.Shape("waveform")[1]])
		}
	case inject("shortens a row"):
		lengths[first]--
	case inject("writes f64"):
		for i := 0; i+1 < int(lengths[first]); i += 2 {
			*(*float64)(unsafe.Pointer(&wave[first*b.Shape("waveform")[1]+i])) = math.Sin(float64(i))
		}
	case inject("is far too loud"):
		wave[first*b.Shape("waveform")[1]] = 1e30
	case inject("gives zeros"):
		clear(wave)
	case inject("writes beyond its tensor"):
		clear(unsafe.Slice(&wave[0], len(wave)+4)[len(wave):])
	case inject("floods its stderr"):
		flood()
	case inject("leaves a child process"):
		child := exec.Command("sleep", "600")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
}

// idle is the stage that never works.
type idle struct{}

func (idle) Configure(context.Context, *stage.Config) error { return nil }
func (idle) Process(context.Context, *stage.Batch) error    { return nil }
