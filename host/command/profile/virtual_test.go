package profile

import (
	"context"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// computer is a machine in virtual time: the pipeline is the real one, and what it calls sleeps.
type computer struct {
	decode, transfer, train time.Duration
	stages                  []slow
	// varies is the largest deviation of a time, as a share of it.
	varies float64
	// start is the time before the first batch of a run.
	start time.Duration
	seed  uint64
}

// slow is a stage: all processes of its plugin, one batch each, take so long.
type slow struct {
	name, plugin string
	takes        time.Duration
}

// usual are the defaults of a run.
func usual(c *computer) bottleneck.Setup {
	s := bottleneck.Setup{
		NumWorkers: 2, BufferSize: 50, Slots: 3, BatchSize: 16, PluginOf: map[string]string{},
		WorkersOf: map[string]int{},
	}
	for _, stage := range c.stages {
		s.PluginOf[stage.name], s.WorkersOf[stage.plugin] = stage.plugin, 1
	}
	return s
}

// with returns a setup with changes.
func with(s bottleneck.Setup, changes ...bottleneck.Setting) bottleneck.Setup {
	workers := map[string]int{}
	for plugin, n := range s.WorkersOf {
		workers[plugin] = n
	}
	s.WorkersOf = workers
	for _, c := range changes {
		plugin, value, named := strings.Cut(c.Value, "=")
		if !named {
			value = c.Value
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			panic(err)
		}
		switch c.Name {
		case "num-workers":
			s.NumWorkers = n
		case "buffer-size":
			s.BufferSize = n
		case "slots":
			s.Slots = n
		case "plugin-workers":
			workers[plugin] = n
		}
	}
	return s
}

// source has so many batches.
type source struct{ n, at int }

func (s *source) Next(b *pipeline.Batch) bool {
	if s.at++; s.at > s.n {
		return false
	}
	b.Rows = append(b.Rows[:0], 0)
	return true
}

// call is a function as what the pipeline calls.
type call func(*pipeline.Batch)

func (f call) Decode(_ context.Context, _ int, b *pipeline.Batch) ([]pipeline.Rejected, error) {
	f(b)
	return nil, nil
}

func (f call) Copy(_ int, b *pipeline.Batch) error { f(b); return nil }

// pool is a stage whose processes another stage of the plugin may have, too.
type pool struct {
	turns chan struct{}
	work  call
}

func (p pool) Process(_ context.Context, b *pipeline.Batch) ([]pipeline.Rejected, time.Duration, error) {
	p.turns <- struct{}{}
	defer func() { <-p.turns }()
	began := time.Now()
	p.work(b)
	return nil, time.Since(began), nil
}

// measured is the number of steps of a run in virtual time.
const measured = 100

// run trains with a setup and returns the report, and how long it took.
func (c *computer) run(t *testing.T, setup bottleneck.Setup) (r *report.Report, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Each phase of each batch has its own time, in whatever order goroutines run.
		sleep := func(phase uint64, d time.Duration) call {
			return func(b *pipeline.Batch) {
				random := rand.New(rand.NewPCG(c.seed<<8+phase, b.Order()))
				time.Sleep(time.Duration(float64(d) * (1 + c.varies*(2*random.Float64()-1))))
			}
		}
		trains := sleep(0, c.train)
		began := time.Now()
		time.Sleep(c.start)
		cfg := pipeline.Config{
			Source: &source{n: batch.WarmSteps + measured}, RingSlots: setup.BufferSize, DeviceSlots: setup.Slots,
			Workers: setup.NumWorkers, Prefetch: 4, Decoder: sleep(1, c.decode),
			Device: sleep(2, c.transfer),
		}
		turns := map[string]chan struct{}{}
		for plugin, n := range setup.WorkersOf {
			turns[plugin] = make(chan struct{}, n)
		}
		for i, s := range c.stages {
			cfg.Stages = append(cfg.Stages, pipeline.Step{
				Name: s.name, Stage: pool{turns[s.plugin], sleep(uint64(3+i), s.takes)},
			})
		}
		p, err := pipeline.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(t.Context()) })
		<-p.Warm()
		collector := report.NewCollector(nil, report.Before{Warm: batch.WarmSteps})
		for step, last := int64(1), time.Now(); ; step++ {
			d, err := p.Acquire(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			trains(&d.Batch)
			p.Release(d)
			now := time.Now()
			collector.Take([]event.Event{&event.Step{Step: step, Rows: []int32{0}, Times: event.Times{
				Time: now.Sub(last), InputWait: p.LastWait(), Train: now.Sub(began),
			}}})
			last = now
		}
		wg.Wait()
		r = &report.Report{Accumulation: report.Accumulation{MicroBatches: 1}}
		collector.Complete(r, report.Measured{Pipeline: p.Figures(), Setup: setup})
		took = time.Since(began)
	})
	return r, took
}
