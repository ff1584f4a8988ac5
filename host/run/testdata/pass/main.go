// Command pass is a plugin for tests and benchmarks: its one stage reads and writes every value of its tensor once, and
// takes as long as its configuration says: sleep_ms, and with long_ms so long for one of five batches, at random.
package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/xtts-host/xtts-host/shared/stage"
)

type pass struct {
	config struct {
		SleepMs int `json:"sleep_ms"`
		LongMs  int `json:"long_ms"`
	}
}

func (p *pass) Configure(_ context.Context, cfg *stage.Config) error { return cfg.Decode(&p.config) }

func (p *pass) Process(_ context.Context, b *stage.Batch) error {
	// Four values at a time: the speed of a shorter loop depends on where the linker puts it.
	x := b.Float32("x")
	for ; len(x) >= 4; x = x[4:] {
		x[0] *= 1.0001
		x[1] *= 1.0001
		x[2] *= 1.0001
		x[3] *= 1.0001
	}
	for i := range x {
		x[i] *= 1.0001
	}
	ms := p.config.SleepMs
	if p.config.LongMs > 0 && rand.N(5) == 0 {
		ms = p.config.LongMs
	}
	time.Sleep(time.Duration(ms) * time.Millisecond)
	return nil
}

func main() {
	stage.Serve(stage.Plugin{ID: "pass", Version: "0", Stages: map[string]func() stage.Stage{
		"pass": func() stage.Stage { return new(pass) },
	}})
}
