package dashboard

import (
	"runtime/metrics"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Live is what a run of this process knows of itself beyond its files. All of it is copied without waiting for the run.
type Live struct {
	Snapshot event.Snapshot
	Look     pipeline.Look
	Stats    pipeline.Stats
	Plugins  []Plugin
	Unusable int // clips
	Ranks    int // processes that train the model
}

// Plugin is a plugin with the number of its processes that are up.
type Plugin struct {
	report.Plugin
	Up int
}

// live is what the server has of the run of this process.
type live struct {
	mu    sync.Mutex // guards what follows
	look  func() Live
	at    event.RunPhase
	times [4]float64 // of a step, smoothed, in ms: wait, train, optimizer, other
	steps int64
	past  []pipeline.Stats // one for each of the last seconds, the oldest first
}

// smoothing is the share of a new step in the smoothed times.
const smoothing = 0.05

// take keeps what a page shows of steps.
func (l *live) take(events []event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		switch e := e.(type) {
		case *event.Phase:
			l.at = e.Phase
		case *event.Step:
			l.steps++
			share := max(smoothing, 1/float64(l.steps))
			for i, d := range []time.Duration{e.InputWait, e.Train, e.Optimize, e.Other()} {
				ms := float64(max(0, d)) / float64(time.Millisecond)
				l.times[i] += share * (ms - l.times[i])
			}
		}
	}
}

func (l *live) watch(look func() Live) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look, l.past = look, nil
}

// end notes that the run has ended, so that its files tell its state.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look, l.at = nil, event.Ended
}

func (l *live) phase() event.RunPhase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// slots is a message about the inside of a run.
type slots struct {
	Ring   [][3]int64 `json:"ring"`   // of each slot: state, phase, step
	Device [][2]int64 `json:"device"` // state, step
	Phases []phase    `json:"phases"` // of the pipeline, for a batch
	Step   []phase    `json:"step"`   // parts of a step, smoothed
	// Memory of the GPUs, and of this process.
	Memory   []memory    `json:"memory"`
	Plugins  []pluginRow `json:"plugins"`
	Unusable int         `json:"unusable"`
	Ranks    int         `json:"ranks"`
	Rebuilt  int         `json:"rebuilt"`
}

type phase struct {
	Name string  `json:"name"`
	Ms   float64 `json:"ms"`
}

type memory struct {
	Name  string `json:"name"`
	Used  int64  `json:"used"`  // bytes
	Limit int64  `json:"limit"` // 0 for none
}

type pluginRow struct {
	Name     string  `json:"name"`
	Up       int     `json:"up"` // -1 if it is not known
	Workers  int     `json:"workers"`
	Restarts int     `json:"restarts"`
	Calls    int64   `json:"calls"`
	Failed   int64   `json:"failed"`
	Lost     int64   `json:"lost"`
	P50      float64 `json:"p50"` // ms
	P99      float64 `json:"p99"`
	Memory   int64   `json:"memory"` // bytes, the peak of a process
}

func rowOf(p *report.Plugin, up int) pluginRow {
	return pluginRow{
		text(p.ID), up, p.Workers, p.Restarts, p.Calls, p.Failed, p.Lost, p.P50Ms, p.P99Ms, p.PeakMemoryBytes,
	}
}

// mostSlots bounds the ring slots that a page shows.
const mostSlots = 256

// now looks at the run. It is nil if there is nothing to look at. second is true once a second, for what changes
// slowly.
func (l *live) now(second bool) (*slots, *event.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.look == nil {
		return nil, nil
	}
	v := l.look()
	s := &slots{Unusable: v.Unusable, Ranks: v.Ranks, Rebuilt: v.Stats.Rebuilt}
	for _, r := range v.Look.Ring[:min(len(v.Look.Ring), mostSlots)] {
		s.Ring = append(s.Ring, [3]int64{int64(r.State), int64(r.Phase), r.Step})
	}
	for _, d := range v.Look.Device {
		s.Device = append(s.Device, [2]int64{int64(d.State), d.Step})
	}
	if second {
		if l.past = append(l.past, v.Stats); len(l.past) > 20 {
			l.past = l.past[1:]
		}
	}
	s.Phases = recentPhases(l.past, v.Stats)
	for i, name := range []string{"wait", "train", "optimizer", "other"} {
		s.Step = append(s.Step, phase{name, l.times[i]})
	}
	for _, m := range v.Snapshot.Memory {
		s.Memory = append(s.Memory, memory{text(m.Role) + ", GPU " + text(m.Device), m.Used, m.Limit})
	}
	s.Memory = append(s.Memory, memory{"Go heap of the host process", heap(), 0})
	for i := range v.Plugins {
		s.Plugins = append(s.Plugins, rowOf(&v.Plugins[i].Plugin, v.Plugins[i].Up))
	}
	return s, &v.Snapshot
}

// recentPhases are the mean times of a batch in the phases since the oldest of the past figures.
func recentPhases(past []pipeline.Stats, now pipeline.Stats) (list []phase) {
	before := pipeline.Stats{Phases: make([]pipeline.Phase, len(now.Phases))}
	if len(past) > 0 && past[0].Batches < now.Batches {
		before = past[0]
	}
	n := float64(max(1, now.Batches-before.Batches))
	for i, p := range now.Phases {
		list = append(list, phase{text(p.Name), float64(p.Busy-before.Phases[i].Busy) / float64(time.Millisecond) / n})
	}
	return list
}

// heap is the memory of Go's heap in this process, in bytes.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s[0].Value.Uint64())
}
